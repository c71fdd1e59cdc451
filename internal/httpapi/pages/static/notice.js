// Shows the operator's notice on the pages that the server draws. All else on them works without
// scripts. The app keeps under the same name which notice was dismissed.
const key = "millrace.notice";
const place = document.getElementById("notice");
let shown = "";
let ending;

async function refresh() {
  let notice;
  try {
    const response = await fetch("/api/notice", { cache: "no-store" });
    if (!response.ok) return;
    notice = (await response.json()).data;
  } catch {
    return; // the next look finds it
  }
  const left = notice.until === null ? Infinity : Date.parse(notice.until) - Date.now();
  const over = left <= 0 || (notice.level !== "warning" && notice.id === localStorage.getItem(key));
  show(over ? { id: null } : notice);
  clearTimeout(ending);
  if (left > 0 && left < 2 ** 31) ending = setTimeout(show, left, { id: null });
}

function show(notice) {
  if (notice.id === shown) return;
  shown = notice.id;
  place.replaceChildren();
  if (notice.id === null) return;
  const text = document.createElement("p");
  text.textContent = notice.text;
  text.dir = "auto";
  place.className = notice.level === "warning" ? "announced warning" : "announced";
  place.append(text);
  if (notice.level !== "warning") place.append(dismissal(notice.id));
}

function dismissal(id) {
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Dismiss notice";
  button.addEventListener("click", () => {
    localStorage.setItem(key, id);
    show({ id: null });
  });
  return button;
}

refresh();
setInterval(() => document.hidden || refresh(), 15_000);
