"""Importing this module reads what the first questions about a SASS document need: its makers, and the words about opcodes."""

import gpa_lsp.lsp.sass.document
import gpa_lsp.lsp.sass.instruction_words
import gpa_lsp.lsp.sass.operand_words
import gpa_lsp.lsp.sass.stall_words
import gpa_lsp.lsp.sass.tokens
import gpa_lsp.lsp.sass.value_trace  # noqa: F401
from gpa_lsp.binary.opcode_words import describe_words

describe_words("LDG")
