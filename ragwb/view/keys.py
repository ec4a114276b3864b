"""Scripts of the widgets: what leaves the keys to the controls, and what lets keys label."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ipywidgets

# JupyterLab takes keys for its cells from whatever has the focus, unless that says no: a digit
# would turn the cell of the form into a heading. A click on a text gives the form the focus. A
# criterion is focused as a whole, for its buttons are made anew whenever their value changes.
# A widget keeps a change back while the one before it is on its way, a button's click overtakes it:
# a step waits until the kernel has said that it knows what is chosen.
LABEL_KEYS = """if (!window.ragwbLabels) {
  window.ragwbLabels = true;
  const groups = (form) => [...form.querySelectorAll(".rw-criterion")];
  const buttons = (group) => [...group.querySelectorAll("button")];
  const chosenIn = (group) => buttons(group).findIndex((one) => one.matches(".mod-active"));
  const isOpen = (group) => chosenIn(group) < 0;
  const isKnown = (form) => form.querySelector(".rw-known [data-chosen]")?.dataset.chosen
    === groups(form).map(chosenIn).join();
  const focus = (part) => { part.tabIndex = -1; part.focus({preventScroll: true}); };
  const onForm = (name, act) => document.addEventListener(name, (event) => {
    const form = event.target.closest?.(".rw-labelling");
    if (form) { act(form, event); }
  }, true);
  onForm("mousedown", (form) => { form.tabIndex = -1; });
  onForm("focusin", (form, event) => {
    event.target.setAttribute("data-lm-suppress-shortcuts", "true");
  });
  const stepOnceKnown = (form, step) => {
    form.waits = form.isConnected && !isKnown(form);
    if (form.waits) { setTimeout(stepOnceKnown, 50, form, step); } else { step.click(); }
  };
  onForm("click", (form, event) => {
    const step = event.target.closest(".rw-step");
    if (step && !isKnown(form)) {
      event.stopImmediatePropagation();
      if (!form.waits) { stepOnceKnown(form, step); }
    } else if (step) {
      focus(groups(form)[0]);
      form.scrollIntoView({block: "nearest"});
    }
  });
  onForm("keydown", (form, event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || !/^[0-9]$/.test(event.key)) { return; }
    const all = groups(form), held = event.target.closest(".rw-criterion");
    const at = all.indexOf(held || all.find(isOpen) || all[0]);
    const given = buttons(all[at]), none = given.pop();
    const chosen = event.key === "0" ? none : given[event.key - 1];
    if (!chosen) { return; }
    event.preventDefault();
    chosen.click();
    if (all[at + 1]) { focus(all[at + 1]); } else { form.querySelector(".rw-onward").focus(); }
  });
}"""


def script_output(script: str) -> ipywidgets.Output:
    """A widget that runs a script once it is shown, and shows nothing."""
    import ipywidgets as widgets

    data = {"application/javascript": script}
    return widgets.Output(outputs=({"output_type": "display_data", "data": data, "metadata": {}},))
