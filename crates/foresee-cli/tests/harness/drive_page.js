// Uses a report's page as a reader would, and leaves what it saw in the document.
const seen = [];
const press = (key) => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
const picked = () => document.querySelector("#list [aria-current=true]");
const output = () => document.querySelector("output")?.textContent;
try {
  seen.push(["findings", document.querySelectorAll("#list li").length]);
  seen.push(["last", output()]);
  seen.push(["drawn", document.querySelectorAll(".step").length]);
  seen.push(["heading", document.querySelector("#finding h2")?.textContent]);
  const unknown = (view) => [...view.querySelectorAll(".step text")].filter((label) => label.textContent.includes("=?")).length;
  seen.push(["unknown values", [...document.querySelectorAll(".view")].map(unknown)]);
  press("Home");
  seen.push(["first", output()]);
  press("ArrowRight");
  seen.push(["second", output()]);
  seen.push(["future", document.querySelectorAll(".step.future").length > 0]);
  // Source that runs beyond the right edge of its box is not seen by most.
  const hidden = (pre) => pre.scrollHeight + 1 < (pre.textContent.split("\n").length - 1) * parseFloat(getComputedStyle(pre).lineHeight);
  const sources = [...document.querySelectorAll("#state pre")];
  seen.push(["sources", sources.length], ["hidden sources", sources.filter(hidden).length]);
  press("n");
  seen.push(["next", picked()?.dataset.id]);
  const search = document.getElementById("search");
  search.value = "no such thing";
  search.dispatchEvent(new Event("input"));
  seen.push(["filtered", document.querySelectorAll("#list li").length]);
  search.value = "";
  search.dispatchEvent(new Event("input"));
  seen.push(["all again", document.querySelectorAll("#list li").length]);
  const select = document.querySelector("#filters select");
  if (select) {
    select.value = select.options[1].value;
    select.dispatchEvent(new Event("change"));
    seen.push(["selected", document.querySelectorAll("#list li").length]);
  }
  document.getElementById("theme").click();
  seen.push(["themes", document.documentElement.dataset.theme]);
  seen.push(["injected", document.querySelectorAll("main script, main b, nav b, main i").length]);
} catch (error) { seen.push(["error", String(error)]); }
document.body.replaceChildren();
const result = document.createElement("pre");
result.id = "result";
result.textContent = JSON.stringify([...seen, ["errors", errors]]);
document.body.append(result);
