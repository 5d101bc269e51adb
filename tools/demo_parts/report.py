"""What the findings amount to: the JSON fields, the checks and the table."""

MIB = 1 << 20


def fields(found):
    chats = (found.first_chat, found.second_chat, found.other_chat)
    return {
        "cold_ms": round(found.cold.first_token_ms, 1),
        "warm_ms": round(found.after_kill.total_ms, 1),
        "speedup": round(found.cold.first_token_ms / found.after_kill.total_ms, 1),
        "document_tokens": found.document_tokens,
        "reused_tokens_after_kill": found.after_kill.answer.reused_tokens,
        "session_tokens": found.session.tokens,
        "session_reusable_tokens_after_kill": found.session.reusable_tokens,
        "reused_tokens_other_worker": found.other_worker.answer.reused_tokens,
        "new_blocks_other_worker": found.other_chat.imported.new_blocks,
        "shared_blocks": found.other_chat.imported.shared_blocks,
        "store_bytes": found.totals.store_bytes,
        "slot_files_bytes": sum(chat.slot_file_bytes for chat in chats),
        "answers_equal": answers_equal(found),
        "verify_ok": found.verify_ok,
    }


def answers_equal(found):
    """The same second question: slot kept, restored in the same process, restored in a new one."""
    kept = found.kept.token_ids
    return kept == found.same_process.answer.token_ids == found.after_kill.answer.token_ids


def broken_promises(found):
    """What does not hold of what the demo shows. Times are reported, never judged."""
    least = found.document_tokens - found.block_tokens
    reuse = (("from A's own slot", found.kept), ("by A from the store", found.same_process.answer),
             ("after the kill", found.after_kill.answer),
             ("by worker B", found.other_worker.answer))
    own_blocks = (-(-len(found.other_chat.ids) // found.block_tokens)
                  - found.known_tokens // found.block_tokens)
    checks = (
        ("tokens reused by the cold prefill", found.cold.reused_tokens, "0",
         found.cold.reused_tokens == 0),
        *((f"tokens reused {how}", answer.reused_tokens, f"at least {least}",
           answer.reused_tokens >= least) for how, answer in reuse),
        ("tokens of the session that A left", found.session.tokens,
         str(len(found.first_chat.ids)), found.session.tokens == len(found.first_chat.ids)),
        ("tokens of it that are reusable after the kill", found.session.reusable_tokens,
         str(found.session.tokens), found.session.reusable_tokens == found.session.tokens),
        ("tokens of B's prompt that match finds", found.matched_tokens,
         str(found.other_worker.stored_tokens),
         found.matched_tokens == found.other_worker.stored_tokens),
        ("blocks that B's chat added", found.other_chat.imported.new_blocks, str(own_blocks),
         found.other_chat.imported.new_blocks == own_blocks),
        ("blocks in the store", found.totals.blocks, str(found.needed_blocks),
         found.totals.blocks == found.needed_blocks),
        ("answers equal", answers_equal(found), "True", answers_equal(found)),
        ("esker verify", found.verify_ok, "True", found.verify_ok),
    )
    return [f"{what}: {value}, expected {expected}"
            for what, value, expected, holds in checks if not holds]


def table(found):
    """The findings for people."""
    warm, other = found.after_kill, found.other_worker
    rows = (
        ("", "A, cold", "A, after SIGKILL", "B, other chat"),
        ("time to first token", milliseconds(found.cold.first_token_ms),
         milliseconds(warm.total_ms), milliseconds(other.total_ms)),
        ("  export from the store", "", milliseconds(warm.export_ms),
         milliseconds(other.export_ms)),
        ("  restore into the slot", "", milliseconds(warm.restore_ms),
         milliseconds(other.restore_ms)),
        ("  prefill and first token", milliseconds(found.cold.first_token_ms),
         milliseconds(warm.answer.first_token_ms), milliseconds(other.answer.first_token_ms)),
        ("tokens computed", *(str(answer.prefilled_tokens)
                              for answer in (found.cold, warm.answer, other.answer))),
        ("tokens reused", *(str(answer.reused_tokens)
                            for answer in (found.cold, warm.answer, other.answer))),
        ("slot file", *(mebibytes(chat.slot_file_bytes) for chat in chats_of(found))),
        ("blocks new to the store", *(str(chat.imported.new_blocks) for chat in chats_of(found))),
        ("blocks shared", *(str(chat.imported.shared_blocks) for chat in chats_of(found))),
        ("import into the store", *(milliseconds(chat.import_ms) for chat in chats_of(found))),
    )
    lines = [f"{name:<26}" + "".join(f"{cell:>18}" for cell in cells) for name, *cells in rows]
    return "\n".join([*lines, "", *totals(found)])


def totals(found):
    values = fields(found)
    yield (f"speedup after the kill     {values['speedup']:.1f}x "
           "(the start of a server process is in neither time)")
    yield (f"session after the kill     {found.session.reusable_tokens:,} of "
           f"{found.session.tokens:,} tokens are reusable")
    yield (f"stored                     {mebibytes(values['store_bytes'])} in "
           f"{found.totals.blocks} blocks; the three slot files are "
           f"{mebibytes(values['slot_files_bytes'])}")
    yield f"answers equal              {yes(values['answers_equal'])} (slot kept = restored)"
    yield f"esker verify               {'clean' if values['verify_ok'] else 'DAMAGE'}"


def chats_of(found):
    return (found.first_chat, found.second_chat, found.other_chat)


def milliseconds(value):
    return f"{value:,.0f} ms" if value >= 10 else f"{value:.1f} ms"


def mebibytes(value):
    return f"{value / MIB:.1f} MiB"


def yes(value):
    return "yes" if value else "NO"
