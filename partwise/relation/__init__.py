"""The relational tree of a view's query, and rules on it, one file each.

build     text -> tree
keys      by which columns rows are unique
carried   which rows of which input can matter for which rows of the result
delta     whether changed rows can be merged into the result
show      the tree as people and programs read it
"""

from partwise.relation.build import Known, Tables, build
from partwise.relation.carried import Carried, carried
from partwise.relation.delta import Delta, delta
from partwise.relation.keys import key
from partwise.relation.tree import Tree

__all__ = ["Carried", "Delta", "Known", "Tables", "Tree", "build", "carried", "delta", "key"]
