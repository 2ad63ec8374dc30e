"""create_skill: persist a skill proposal whose whole content a human has approved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_runtime import Tool
from reread.session import Session
from reread.skills import PROPOSAL_SCHEMA, persist_proposal, proposal_from


def tool(session: Session) -> Tool:
    """Make the tool for a run."""

    async def create(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        proposal = proposal_from(arguments)
        approval = session.approvals.check(
            f"skill-proposal:{proposal.name}",
            proposal.sha256,
            cause=f"The skill '{proposal.name}' would be created, and nobody has approved it.",
            remedy="A person looks at the proposal file and adds --approve-skill-proposal PATH.",
        )
        made = persist_proposal(session.skills, proposal)
        session.approvals.spent_on(approval)  # only now: a refusal must not use the word up
        done = {
            "name": proposal.name,
            "path": made.path,
            "sha256": made.sha256,
            "scans": session.skills.scans,
        }
        session.record.event("skill.created", {**done, "approved_at": approval.granted_at})
        return done

    return Tool(
        "create_skill",
        "Persist a new skill. Works only for exactly the content that a person approved "
        "beforehand; an existing skill is never replaced.",
        PROPOSAL_SCHEMA,
        create,
        changes=True,
        subject=lambda arguments: str(arguments.get("name", "")),
    )
