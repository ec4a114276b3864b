"""A small corpus with one document for each reason to be filtered, and a service over it."""

from __future__ import annotations

import datetime
from pathlib import Path

from ragwb.service.app import Running, create_app
from ragwb.service.build import build_index
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import load_embedder
from ragwb.service.index import open_index
from ragwb.service.pipeline import Pipeline, Rewrite

NOW = datetime.datetime(2026, 11, 30, 8, 0, tzinfo=datetime.UTC)
KEY = b"0123456789abcdef0123456789abcdef"

FRONT = """---
tenant: {tenant}
document_id: {document_id}
version: "{version}"
title: {title}
status: {status}
departments: {departments}
effective_from: {start}
effective_to: {end}
source: 测试
---
"""
DEFAULTS = {
    "tenant": "starmall",
    "version": "1",
    "title": "退款政策",
    "status": "published",
    "departments": "[]",
    "start": "2025-01-01",
    "end": "null",
}
BODIES = {
    "refund": "# 退款政策\n\n## 到账时间\n\n退款审核通过后，储蓄卡三天到账。信用卡五天到账。\n\n"
    "## 运费\n\n个人原因退货，运费自付。\n",
    "refund-old": "# 退款政策\n\n## 到账时间\n\n退款审核通过后，十天到账。\n",
    "codes": "# 错误码\n\n## E-1047\n\n错误码 E-1047 表示支付超时，请重新下单。\n",
    "finance": "# 财务手册\n\n退款到账前由财务主管审批。\n",
    "other-tenant": "# 退款政策\n\n云裳退款当天到账。\n",
    "draft": "# 草稿\n\n退款一小时到账。\n",
    "withdrawn": "# 旧指南\n\n退款两周到账。\n",
    "future": "# 新政策\n\n退款即时到账。\n",
}
ATTRIBUTES: dict[str, dict[str, str]] = {
    "refund": {"document_id": "refund", "version": "2025.10"},
    "refund-old": {"document_id": "refund", "version": "2025.9"},
    "codes": {"document_id": "codes"},
    "finance": {"document_id": "finance", "departments": "[finance]"},
    "other-tenant": {"document_id": "refund", "tenant": "yunshang"},
    "draft": {"document_id": "draft", "status": "unpublished"},
    "withdrawn": {"document_id": "withdrawn", "status": "retired"},
    "future": {"document_id": "future", "start": "2031-01-01"},
}


def write_document(folder: Path, name: str, body: str, **attributes: str) -> None:
    """One Markdown file with front matter."""
    front = FRONT.format(**{**DEFAULTS, "document_id": name, **attributes})
    (folder / f"{name}.md").write_text(front + body, encoding="utf-8")


def write_corpus(folder: Path) -> Path:
    """All documents of the corpus."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, body in BODIES.items():
        write_document(folder, name, body, **ATTRIBUTES[name])
    return folder


def make_settings(home: Path, **settings: object) -> ServiceConfig:
    """A configuration with the hash embedder over `home/corpus`."""
    values = {
        "corpus": home / "corpus",
        "index_dir": home / "index" / "one",
        "cache_dir": home / "cache",
        "embedder": "hash",
        **settings,
    }
    return ServiceConfig(**values)  # type: ignore[arg-type]  # values of many types


def make_pipeline(
    home: Path, *, rewrite: Rewrite | None = None, now: datetime.datetime = NOW, **settings: object
) -> Pipeline:
    """A pipeline over the corpus, built where it is not there yet."""
    if not (home / "corpus").exists():
        write_corpus(home / "corpus")
    config = make_settings(home, **settings)
    embedder = load_embedder(config)
    index = open_index(build_index(config, embedder))
    return Pipeline(config, index, embedder, lambda: now, rewrite)


def make_running(pipeline: Pipeline | None, config: ServiceConfig, *, key: bytes | None) -> Running:
    """What an application answers with, at the fixed time."""
    return Running(config=config, key=key, clock=lambda: NOW, pipeline=pipeline)


__all__ = [
    "KEY",
    "NOW",
    "create_app",
    "make_pipeline",
    "make_running",
    "make_settings",
    "write_corpus",
    "write_document",
]
