"""A rail with a misspelt hook: counts the calls of a session and says so in the prompt."""

from pathlib import Path

from reread.extensions.api import Context, Rail, State

PACKAGE = Path(__file__).resolve().parent.parent


class CountingRail(Rail):
    """Counts calls in the session's state file."""

    async def before_invoke(self, ctx: Context) -> None:
        """Tell the model."""
        ctx.add_prompt_section("Words are counted by a tool, not by you.")

    async def before_toolcall(self, ctx: Context) -> None:
        """Count the call."""
        with State(PACKAGE, ctx.session).change() as state:
            state["calls"] = state.get("calls", 0) + 1
