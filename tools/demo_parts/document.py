"""The text that the workers read, and what they are asked about it."""

DEFAULT_FILE = "/usr/share/common-licenses/GPL-3"  # on every Debian machine
FIRST_QUESTION = "What is a covered work?"
SECOND_QUESTION = "What is a program?"
OTHER_QUESTION = "Which license is this?"


class DocumentError(Exception):
    """The document cannot be read, or is too short."""


class Document:
    """The beginning of a text file, cut after the last whole line that fits into `tokens`."""

    def __init__(self, path, tokens, worker):
        try:
            with open(path, encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise DocumentError(f"{path}: {error}") from error
        ids = worker.tokenize(text)
        if len(ids) < tokens:
            raise DocumentError(f"{path}: {len(ids)} tokens, --document-tokens asks for {tokens}; "
                                "ask for fewer, or name a longer file with --document")
        text = worker.detokenize(ids[:tokens])
        self.text = text[:text.rfind("\n") + 1] or text
        self.tokens = len(worker.tokenize(self.text))

    def prompt(self, question, worker):
        """Token ids of a chat: the document as system message, the question as the user's."""
        return worker.tokenize_chat([{"role": "system", "content": self.text},
                                     {"role": "user", "content": question}])


def common_length(left, right):
    """How many tokens two lists share at their beginning."""
    for length, (a, b) in enumerate(zip(left, right)):
        if a != b:
            return length
    return min(len(left), len(right))


def distinct_blocks(chats, block_tokens):
    """How many blocks it takes to hold these token lists when nothing is held twice."""
    paths = set()
    for ids in chats:
        paths.update(tuple(ids[:end + block_tokens]) for end in range(0, len(ids), block_tokens))
    by_parent = {}
    for path in paths:
        start = (len(path) - 1) // block_tokens * block_tokens
        by_parent.setdefault(path[:start], []).append(path[start:])
    # A partial block that another one continues is superseded by it.
    return sum(not any(len(other) > len(block) and other[:len(block)] == block for other in blocks)
               for blocks in by_parent.values() for block in blocks)
