"""Tokens of SQL text. The only file that imports sqlglot's private module: `sqlglot.tokens` does not export its types.

The module has existed since sqlglot 30.7; a later major release may move it again (see requirements/core.in).
"""

from __future__ import annotations

from sqlglot.tokenizer_core import Token as Token
from sqlglot.tokenizer_core import TokenType as TokenType
