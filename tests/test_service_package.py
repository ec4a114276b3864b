from __future__ import annotations

import pytest

from ragwb import service


def test_the_face_of_the_package_is_what_it_names() -> None:
    assert [getattr(service, name).__name__ for name in service.__all__] == service.__all__


def test_another_name_is_no_part_of_it() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        service.nothing  # noqa: B018 - the look-up itself is what fails
