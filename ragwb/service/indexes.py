"""The index of a configuration, in a file or in a database, up to date and open."""

from __future__ import annotations

from ragwb.service.build import Edit, Progress, build_index
from ragwb.service.config import ServiceConfig
from ragwb.service.embedding import Embedder
from ragwb.service.index import Index, open_index


def ready_index(
    config: ServiceConfig,
    embedder: Embedder,
    progress: Progress = lambda _done, _total: None,
    *,
    edit: Edit = lambda corpus: corpus,
) -> Index:
    """Bring the index up to date with the corpus, and open it.

    Args:
        config: with a database, the index is there; else it is a file.
        embedder: the model of the vectors.
        progress: told a stage's name, what is done and of how much, in texts.
        edit: what happens to the corpus between its folder and the index.

    Raises:
        DocumentError: the corpus is wrong. SourceError: a remote embedder failed.
        MissingExtraError: the driver of a database is not installed.
        UsageError: the database does not answer, or cannot hold the index.
    """
    if config.database_url is None:
        return open_index(build_index(config, embedder, progress, edit=edit))
    from ragwb.service.postgres import open_postgres
    from ragwb.service.postgres_build import build_postgres

    version = build_postgres(config, embedder, progress, edit=edit)
    return open_postgres(config, version)
