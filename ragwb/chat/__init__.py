"""How is a language model asked? Any OpenAI-compatible endpoint, prompts, and what comes back.

`ChatClient` makes the calls, `Prompt` says what is asked, `ask_model` gives an answer with its
citations, and `find_object` reads JSON that a model wrapped in words. Names are loaded when they
are first used. Of the workbench and of the reference service alike, so it knows neither.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ragwb.lazy import load_lazily

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

__getattr__ = load_lazily(__name__, _HOME)
