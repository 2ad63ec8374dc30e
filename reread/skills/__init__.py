"""SKILL.md folders: load what the world has, choose so that one can see why.

registry       Skills: the skills of a run, selected, activated, read
selection      which skills a task selects, with a reason for each
triggers       where a trigger occurs
negation       whether the task says that it is not wanted
mentions       code, paths and quotations, which only name something
folding        the form in which texts are compared
proposals      skills that a model proposes and a human approves
render         skills as text for the model
scan           the skills of a root, and the cache
roots          where skills come from, and trust
seed           the strict profile, and which profile holds
skill          one SKILL.md
front_matter   YAML in which every scalar is text
diagnostics    the closed list of findings
"""

from reread.skills.diagnostics import CODES, Diagnostic, visible, visible_lines
from reread.skills.proposals import (
    PROPOSAL_SCHEMA,
    Created,
    Proposal,
    persist_proposal,
    proposal_from,
    read_proposal,
)
from reread.skills.registry import Selection, Skills
from reread.skills.render import Body
from reread.skills.roots import tree_digest
from reread.skills.seed import PROFILES, Profile
from reread.skills.selection import Choice
from reread.skills.skill import Skill
from reread.skills.validate import Validated, validate

__all__ = [
    "CODES",
    "PROFILES",
    "PROPOSAL_SCHEMA",
    "Body",
    "Choice",
    "Created",
    "Diagnostic",
    "Profile",
    "Proposal",
    "Selection",
    "Skill",
    "Skills",
    "Validated",
    "persist_proposal",
    "proposal_from",
    "read_proposal",
    "tree_digest",
    "validate",
    "visible",
    "visible_lines",
]
