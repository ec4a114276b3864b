"""How is a language model asked? Any OpenAI-compatible endpoint, prompts, and what comes back.

`ChatClient` makes the calls, `Prompt` says what is asked, `ask_model` gives an answer with its
citations, and `find_object` reads JSON that a model wrapped in words. Names are loaded when they
are first used. Of the workbench and of the reference service alike, so it knows neither.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ragwb.chat.answering import Written, ask_model
    from ragwb.chat.endpoint import ChatClient, ChatModel, Completion
    from ragwb.chat.prompt import Passage, Prompt, load_prompt
    from ragwb.chat.reply import find_object

_HOME = {
    "ChatClient": "endpoint",
    "ChatModel": "endpoint",
    "Completion": "endpoint",
    "Passage": "prompt",
    "Prompt": "prompt",
    "Written": "answering",
    "ask_model": "answering",
    "find_object": "reply",
    "load_prompt": "prompt",
}
__all__ = [
    "ChatClient",
    "ChatModel",
    "Completion",
    "Passage",
    "Prompt",
    "Written",
    "ask_model",
    "find_object",
    "load_prompt",
]


def __getattr__(name: str) -> object:
    if name in _HOME:
        return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
