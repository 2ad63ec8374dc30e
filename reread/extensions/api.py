"""What an author of an extension imports: `from reread.extensions.api import Tool, ToolCard, Rail`.

A tool answers calls of the model; a rail sees what happens around them and may add to the prompt,
stop or rewrite a call, send a steering message or a stream event. Both live in a process of their
own, in the sandbox: they see the package's folder, the work folder of the run, and no network.

The shapes are those of the openjiuwen runtime as far as they go, so that moving a package there
means changing the import line. State that a rail and a tool share goes through `State`, never
through a module's global: that is what survives a reload and what the verifier can see.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "HOOKS",
    "AbortError",
    "CallInputs",
    "Context",
    "Rail",
    "Session",
    "State",
    "Tool",
    "ToolCard",
    "ToolOutput",
]

HOOKS = (
    "before_invoke",
    "after_invoke",
    "before_model_call",
    "after_model_call",
    "on_model_exception",
    "before_tool_call",
    "after_tool_call",
    "on_tool_exception",
    "before_task_iteration",
    "after_task_iteration",
)
"""Names of the hooks of a rail. The ones of task iterations and `on_model_exception` are known, so
that a package may have them, and never called here: this runtime has no task loop of its own."""


class AbortError(Exception):
    """Raise it in `before_tool_call` to stop the call; its text is told to the model."""


@dataclass(frozen=True, slots=True)
class ToolCard:
    """What a model is told about a tool.

    Attributes:
        id: equal to `name`.
        name: letters, digits, `_` and `-`, at most 64.
        description: when to call it, for the model.
        input_params: JSON Schema of the arguments, with `type: "object"` even without parameters.
        properties: `{"resilience": {"timeout_s": 30}}` ends a call after 30 seconds.
    """

    id: str = ""
    name: str = ""
    description: str = ""
    input_params: Any = None
    properties: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """What a call came to.

    Attributes:
        success: it did what was asked.
        data: JSON values for the model. A tool that writes a file says `path`, `exists`, `format`
            and `size_bytes` here.
        error: why not, where it did not.
    """

    success: bool = True
    data: Any = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """The run that a call belongs to."""

    session_id: str

    def get_session_id(self) -> str:
        """Return the id; it is safe as a file name."""
        return self.session_id


class Tool(ABC):
    """One power of the model. The constructor takes no argument and makes the card."""

    def __init__(self, card: ToolCard) -> None:
        self.card = card

    @abstractmethod
    async def invoke(self, inputs: Mapping[str, Any], **kwargs: Any) -> ToolOutput:
        """Do it.

        Args:
            inputs: the arguments, already held against `input_params`.
            kwargs: `session`, and what later versions add.
        """

    @abstractmethod
    def stream(self, inputs: Mapping[str, Any], **kwargs: Any) -> AsyncIterator[ToolOutput]:
        """Do it piece by piece; `yield await self.invoke(inputs, **kwargs)` will do."""


@dataclass(slots=True)
class CallInputs:
    """What a hook is about. In `before_tool_call`, setting `tool_args` rewrites the call.

    Attributes:
        tool_name: '' in hooks that are not about a tool.
        tool_result: the answer that the model gets; None before the call.
    """

    tool_name: str = ""
    tool_args: Any = None
    tool_result: Any = None
    messages: tuple[Mapping[str, Any], ...] = ()


@dataclass(slots=True)
class Context:
    """What a hook gets, and how it acts.

    Attributes:
        session: the run.
        inputs: what it is about.
        extra: shared by the hooks of one call, from `before_tool_call` on.
        exception: the error's text in `on_tool_exception`, else ''.
    """

    session: Session
    inputs: CallInputs = field(default_factory=CallInputs)
    extra: dict[str, Any] = field(default_factory=dict)
    exception: str = ""
    effects: dict[str, Any] = field(default_factory=dict)

    def add_prompt_section(self, text: str) -> None:
        """Add to the system prompt; only in `before_invoke`."""
        self.effects.setdefault("prompt", []).append(text)

    def push_steering(self, text: str) -> None:
        """Say something to the model before its next turn."""
        self.effects.setdefault("steering", []).append(text)

    def emit(self, event: str | Mapping[str, Any]) -> None:
        """Send an event to whoever watches the run."""
        self.effects.setdefault("stream", []).append(event)

    def request_force_finish(self, result: Any) -> None:
        """Stop the call; the model is told `result`. Only in `before_tool_call`."""
        self.effects["finish"] = result


class Rail:
    """Hooks around the loop; override what is needed, each as `async def`.

    An exception in `before_tool_call` stops the call; in any hook it is recorded as a failure.
    """

    def init(self, agent: Any) -> None:
        """Prepare, when the package is loaded. What is raised here refuses the package."""

    def uninit(self, agent: Any) -> None:
        """Let go, when it is unloaded."""

    async def before_invoke(self, ctx: Context) -> None:
        """See that a run begins; the place to add a section to the prompt."""

    async def after_invoke(self, ctx: Context) -> None:
        """See that a round of the run ended."""

    async def before_model_call(self, ctx: Context) -> None:
        """See that the model is about to be asked; the place to steer."""

    async def after_model_call(self, ctx: Context) -> None:
        """See that it answered."""

    async def on_model_exception(self, ctx: Context) -> None:
        """Known, never called here."""

    async def before_tool_call(self, ctx: Context) -> None:
        """See, rewrite or stop a call."""

    async def after_tool_call(self, ctx: Context) -> None:
        """See the answer of a call."""

    async def on_tool_exception(self, ctx: Context) -> None:
        """See the error of a call that failed."""

    async def before_task_iteration(self, ctx: Context) -> None:
        """Known, never called here."""

    async def after_task_iteration(self, ctx: Context) -> None:
        """Known, never called here."""


class State:
    """What rail and tool share for one session: `<package>/.state/<session id>.json`.

    Written whole and in one step, under a lock, so that a reader never sees half of it.
    """

    def __init__(self, package: Path, session: Session) -> None:
        """Name the state of a session; `package` is the package's own folder."""
        self.path = package / ".state" / f"{session.get_session_id()}.json"

    def read(self) -> dict[str, Any]:
        """Return the state, empty where there is none yet."""
        try:
            value = json.loads(self.path.read_text("utf-8"))
        except FileNotFoundError:
            return {}
        return value if isinstance(value, dict) else {}

    @contextlib.contextmanager
    def change(self) -> Iterator[dict[str, Any]]:
        """Yield the state to be changed in place; it is written when the block ends well."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.with_suffix(".lock").open("w") as lock:
            with contextlib.suppress(ImportError):
                import fcntl  # not on Windows, where one process has the state to itself

                fcntl.flock(lock, fcntl.LOCK_EX)
            value = self.read()
            yield value
            self._write(value)

    def _write(self, value: Mapping[str, Any]) -> None:
        number, name = tempfile.mkstemp(dir=self.path.parent, suffix=".tmp")
        with os.fdopen(number, "w", encoding="utf-8") as stream:
            json.dump(value, stream, ensure_ascii=False, sort_keys=True)
            stream.flush()
            os.fsync(stream.fileno())
        Path(name).replace(self.path)
