"""What the cases on sessions share."""

import struct
import subprocess

from cli_case import ATTACH_STATE, HANG_S, SLOT, SLOT_TOKENS, CliCase, slot_ids

NAME = "support 17"


class SessionCase(CliCase):
    def setUp(self):
        super().setUp()
        self.ids = slot_ids(SLOT.read_bytes())
        self.other_slot = self.altered(100)

    def altered(self, common):
        """The slot file with other tokens from `common` on."""
        data = bytearray(SLOT.read_bytes())
        ids = [*self.ids[:common], *(token + 1 for token in self.ids[common:])]
        struct.pack_into(f"<{SLOT_TOKENS}i", data, 24, *ids)
        file = self.dir / f"altered-{common}.slot"
        file.write_bytes(data)
        return file

    def keep(self, name=NAME, slot=SLOT, *more, code=0, store="chat"):
        return self.document("import", store, slot, "--model", "name=tiny", "--session", name,
                             *more, code=code)

    def session(self, verb, *words, code=0, **more):
        """The answer of `esker session VERB … --json`."""
        answer = self.esker("session", verb, *words, "--json", code=code, **more).json
        self.assertEqual(answer["schema"], f"esker.session-{verb}/1")
        return answer

    def attach(self, label, text, name=NAME):
        subprocess.run([ATTACH_STATE, self.home / "chat", name, label, text], check=True,
                       timeout=HANG_S)

    def show(self, name=NAME, code=0):
        return self.session("show", "chat", name, code=code)

    def names(self):
        return [session["name"] for session in self.session("ls", "chat", "--sort", "name")
                ["sessions"]]

    def files(self):
        return {path for path in (self.home / "chat").rglob("*") if path.is_file()}
