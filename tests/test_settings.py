"""Flags win over the environment, that over the configuration, that over the defaults."""

import pytest

from ragwb.errors import UsageError
from ragwb.settings import DEFAULT_BASE_URL, load_settings, project_root, shared_file


@pytest.fixture
def project(tmp_path):
    (tmp_path / "deep" / "er").mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ragwb]\nhome = "var"\nbase_url = "http://configured/"\n', encoding="utf-8"
    )
    return tmp_path


def test_defaults(tmp_path):
    settings = load_settings(start=tmp_path, environ={})
    assert settings.base_url == DEFAULT_BASE_URL
    assert settings.home == tmp_path / ".ragwb"
    assert settings.runs_dir == tmp_path / ".ragwb" / "runs"


def test_order_of_precedence(project):
    deep = project / "deep" / "er"
    configured = load_settings(start=deep, environ={})
    assert (configured.root, configured.home) == (project, project / "var")
    assert configured.base_url == "http://configured"
    environ = {"RAGWB_BASE_URL": "http://environment", "RAGWB_HOME": str(project / "elsewhere")}
    assert load_settings(start=deep, environ=environ).base_url == "http://environment"
    assert load_settings(start=deep, environ=environ).home == project / "elsewhere"
    assert (
        load_settings(start=deep, environ=environ, base_url="http://flag/").base_url
        == "http://flag"
    )


def test_a_pyproject_without_our_table_is_not_the_root(tmp_path):
    (tmp_path / "pyproject.toml").write_text("[project]\nname = 'x'\n", encoding="utf-8")
    inner = tmp_path / "inner"
    inner.mkdir()
    assert project_root(inner) == inner


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.ragwb]\nbaseurl = 1\n", "unknown setting 'baseurl'"),
        ("[tool.ragwb\n", "not TOML"),
        ("[tool.ragwb]\nbase_url = 1\n", "base_url is 1: give a string"),
        ("[tool.ragwb]\nhome = ['a']\n", r'home is \["a"\]: give a string'),
        ("[tool.ragwb]\nsource = true\n", "source is true: give a table"),
        ("tool.ragwb = 'x'  # [tool.ragwb]\n", 'tool.ragwb is "x": give a table'),
        (f"[tool.ragwb]\nx = {'1' * 5000}\n", "not TOML"),
    ],
)
def test_a_wrong_configuration_is_one_clear_line(tmp_path, text, message):
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_settings(start=tmp_path, environ={})


def test_a_byte_order_mark_is_no_part_of_the_configuration(tmp_path):
    (tmp_path / "ragwb.toml").write_bytes(b"\xef\xbb\xbf" + 'author = "王芳"\n'.encode())
    assert load_settings(start=tmp_path, environ={}).author == "王芳"


def test_shared_files_are_found_and_a_missing_one_is_said():
    assert shared_file("notebooks", "10_retrieval_run.ipynb").is_file()
    with pytest.raises(UsageError, match="install ragwb again"):
        shared_file("notebooks", "nothing.ipynb")


def test_the_author_of_notes_is_the_environment_before_the_file(tmp_path):
    (tmp_path / "ragwb.toml").write_text('author = "王芳"\n', encoding="utf-8")
    assert load_settings(start=tmp_path, environ={}).author == "王芳"
    assert load_settings(start=tmp_path, environ={"RAGWB_AUTHOR": "李雷"}).author == "李雷"
    (tmp_path / "ragwb.toml").write_text("", encoding="utf-8")
    assert load_settings(start=tmp_path, environ={}).author is None
