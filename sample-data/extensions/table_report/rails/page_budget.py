"""A rail: counts the pages of a session, and stops a table that would pass the budget."""

from pathlib import Path

from reread.extensions.api import Context, Rail, State

from ..layout import page_count

PACKAGE = Path(__file__).resolve().parent.parent
BUDGET = 200


class PageBudgetRail(Rail):
    """Holds a session to a number of pages."""

    async def before_invoke(self, ctx: Context) -> None:
        """Tell the model what is left."""
        left = BUDGET - State(PACKAGE, ctx.session).read().get("pages", 0)
        ctx.add_prompt_section(f"table_pdf may write {left} more pages in this session.")

    async def before_tool_call(self, ctx: Context) -> None:
        """Count the call; stop it where its pages are more than what is left."""
        if ctx.inputs.tool_name != "table_pdf":
            return
        wanted = page_count(
            len(ctx.inputs.tool_args["rows"]) + ctx.inputs.tool_args.get("repeat", 0)
        )
        with State(PACKAGE, ctx.session).change() as state:
            used = state.setdefault("pages", 0)
            state["calls"] = state.get("calls", 0) + 1
        if used + wanted > BUDGET:
            ctx.request_force_finish(
                {"reason": f"{wanted} pages are more than the {BUDGET - used} that are left"}
            )

    async def after_tool_call(self, ctx: Context) -> None:
        """Count the pages that were written."""
        if ctx.inputs.tool_name != "table_pdf" or not ctx.inputs.tool_result.get("ok"):
            return
        with State(PACKAGE, ctx.session).change() as state:
            state["pages"] = state.get("pages", 0) + ctx.inputs.tool_result["data"]["pages"]
            pages = state["pages"]
        ctx.emit({"pages": pages})
