"""What the cases on files of other programs share.

The files are taken apart here once more, without any code of Esker.
"""

import dataclasses
import struct

from cli_case import SLOT, CliCase
from llama_tool_test import SLOTS, Slot

REAL_SLOT = SLOTS / "smollm2-4.slot"
REAL_SESSION = SLOTS / "smollm2-4.session"
NAME = "support 17"


def session_of(slot, architecture=b"llama"):
    """The session file with the tokens and the cache of a sequence file."""
    data = dataclasses.replace(slot, packed=False).write()
    memory = 12 + 4 * len(slot.tokens)
    return (struct.pack("<2I", 0x6767736E, slot.version + 7) + data[8:memory] +
            struct.pack("<I", len(architecture)) + architecture + data[memory:])


class ConvertCase(CliCase):
    def setUp(self):
        super().setUp()
        self.tiny = Slot.read(SLOT.read_bytes())

    def put(self, name, data):
        path = self.dir / name
        path.write_bytes(data if isinstance(data, bytes) else data.write())
        return path

    def convert(self, source, name, *words, code=0):
        """The answer, and the bytes that were written."""
        answer = self.document("convert", source, self.dir / name, *words, "-f", code=code)
        path = self.dir / name
        return answer, path.read_bytes() if path.is_file() else None

    def no_leftovers(self):
        self.assertEqual([p.name for p in self.dir.glob(".esker*")], [])

    def snapshot(self, name="chat.esnap", source=SLOT, *words):
        self.convert(source, name, "--model", "name=tiny", *words)
        return self.dir / name
