import json
import os
import time
from pathlib import Path

from reread.extensions.api import Rail

EXT_ROOT = Path(__file__).resolve().parent.parent


class NoteRail(Rail):
    def _bump(self, ctx, event):
        if ctx.session is None:
            return
        d = EXT_ROOT / ".state"
        d.mkdir(exist_ok=True)
        p = d / f"{ctx.session.get_session_id()}.json"
        cur = json.loads(p.read_text(encoding="utf-8")) if p.is_file() else {"count": 0, "events": []}
        cur["count"] += 1
        cur["events"].append(event)
        cur["updated_at"] = time.time()
        tmp = p.with_suffix(".tmp")
        tmp.write_text(json.dumps(cur), encoding="utf-8")
        os.replace(tmp, p)

    async def before_invoke(self, ctx):
        self._bump(ctx, "before_invoke")

    async def after_invoke(self, ctx):
        self._bump(ctx, "after_invoke")

    async def before_model_call(self, ctx):
        self._bump(ctx, "before_model_call")

    async def after_model_call(self, ctx):
        self._bump(ctx, "after_model_call")

    async def before_tool_call(self, ctx):
        self._bump(ctx, f"before_tool_call:{ctx.inputs.tool_name}")

    async def after_tool_call(self, ctx):
        self._bump(ctx, f"after_tool_call:{ctx.inputs.tool_name}")

    async def before_task_iteration(self, ctx):
        self._bump(ctx, "before_task_iteration")

    async def after_task_iteration(self, ctx):
        self._bump(ctx, "after_task_iteration")
