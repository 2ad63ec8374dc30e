"""What a human allowed: a subject with exactly this content, good for one use.

Proves: nothing that needs a human's word happens without it, or on other bytes than those that
were there when the word was given, or twice.
Does not prove: that the human looked. No tool can reach this module; words come from flags, from a
fixture's host steps and from the Python API.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

from agent_runtime import Failure
from reread.values import Approval, Code

SHOWN_DIGITS = 12


class Approvals:
    """The words given for one run, and which of them were spent."""

    def __init__(self, granted: Iterable[Approval] = ()) -> None:
        self._granted: dict[str, Approval] = {}
        self._spent: list[Approval] = []
        for approval in granted:
            self.grant(approval.subject, approval.sha256, at=approval.granted_at)

    @property
    def spent(self) -> tuple[Approval, ...]:
        """The approvals that were used, in order."""
        return tuple(self._spent)

    @property
    def granted(self) -> tuple[Approval, ...]:
        """The approvals that were given and not used yet."""
        return tuple(self._granted.values())

    def grant(self, subject: str, sha256: str, *, at: str = "") -> Approval:
        """Take a human's word for a subject with this digest; the last word counts."""
        approval = Approval(subject, sha256, at or datetime.now(UTC).isoformat())
        self._granted[subject] = approval
        return approval

    def find(self, subject: str) -> Approval | None:
        """Return the unspent approval of a subject."""
        return self._granted.get(subject)

    def check(self, subject: str, sha256: str, *, cause: str, remedy: str) -> Approval:
        """Return the approval that covers this content, without spending it.

        Args:
            cause: what would happen; the sentence of approval_required.
            remedy: how a human gives the word.

        Raises:
            Failure: approval_required, approval_used, approval_stale.
        """
        approval = self._granted.get(subject)
        if approval is None:
            if any(spent.subject == subject for spent in self._spent):
                raise Failure(Code.approval_used, f"The approval of '{subject}' is spent.", remedy)
            raise Failure(Code.approval_required, cause, remedy)
        if approval.sha256 != sha256:
            raise Failure(
                Code.approval_stale,
                f"'{subject}' was approved with sha256 {approval.sha256[:SHOWN_DIGITS]}… "
                f"and is {sha256[:SHOWN_DIGITS]}… now.",
                remedy,
            )
        return approval

    def spend(self, subject: str, sha256: str, *, cause: str, remedy: str) -> Approval:
        """Use the approval that covers this content; it cannot be used again.

        Raises:
            Failure: approval_required, approval_used, approval_stale.
        """
        approval = self.check(subject, sha256, cause=cause, remedy=remedy)
        self.spent_on(approval)
        return approval

    def spent_on(self, approval: Approval) -> None:
        """Note that what an approval allowed has been done."""
        del self._granted[approval.subject]
        self._spent.append(approval)
