"""The relational tree of a view's query, and rules on it, one file each.

build     text -> tree
keys      by which columns rows are unique
carried   which rows of which input can matter for which rows of the result
joined    which rows of parts a changed row of a dimension meets
delta     whether changed rows can be merged into the result
update_class  how rows come and go: monotonic, weakest, weak, strict
show      the tree as people and programs read it
"""

from partwise.relation.build import Known, Tables, build
from partwise.relation.carried import Carried, carried
from partwise.relation.delta import Delta, delta
from partwise.relation.joined import JoinedBy, joined
from partwise.relation.keys import key
from partwise.relation.tree import Tree

__all__ = ["Carried", "Delta", "JoinedBy", "Known", "Tables", "Tree", "build", "carried", "delta", "joined", "key"]
