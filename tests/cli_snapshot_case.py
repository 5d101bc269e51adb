"""What the cases on snapshots share."""

import json
import subprocess

from cli_case import BINARY, HANG_S, SLOT
from cli_session_case import SessionCase

# The two paths fork at token 100, inside a block, so tokens 96 to 99 stand in two blocks.
PATH_TOKENS = 276
TOKENS = 280
BLOCKS = 9
SMALL = ("--capacity", "16M", "--segment-size", "1M")


class SnapshotCase(SessionCase):
    """A store with two paths, and what tests do with its snapshots."""

    def setUp(self):
        super().setUp()
        self.filled()
        self.file = self.dir / "chat.esnap"

    def export(self, *words, file=None, store="chat", code=0):
        return self.document("export", store, *words, "-o", file or self.file, "-f", code=code)

    def bring(self, store, file=None, *more, code=0, **options):
        return self.document("import", store, file or self.file, "--create", *SMALL, *more,
                             code=code, **options)

    def held(self, file=None):
        return self.document("info", file or self.file)

    def diff(self, a, b, *more, code=0):
        return self.document("diff", a, b, *more, code=code)

    def shell(self, line, code=0):
        done = subprocess.run(["sh", "-c", line], env={**self.env, "ESKER": BINARY}, cwd=self.dir,
                              capture_output=True, timeout=HANG_S)
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def assert_same_rows(self, store, *more):
        """The rows of the slot file come out of `store` byte for byte."""
        ids = self.dir / "ids.json"
        ids.write_text(json.dumps(self.ids))
        self.esker("export", store, "--ids", ids, "--like", SLOT, "-o", "back.slot", "-f", *more)
        self.assertEqual((self.dir / "back.slot").read_bytes(), SLOT.read_bytes())

    def unequal_slot(self, at=-100):
        """The slot file with other bytes in one row, under the same tokens."""
        data = bytearray(SLOT.read_bytes())
        data[at] ^= 0xFF
        file = self.dir / "unequal.slot"
        file.write_bytes(data)
        return file
