// The form of an operation's page that sends a request. Nothing is kept: the token lives in its field alone.
const box = document.querySelector("#try-it"), form = box.querySelector("form"), dialog = box.querySelector("dialog");
const answer = box.querySelector("#answer"), LONGEST = 200_000; // characters shown of an answer

box.hidden = false;

form.addEventListener("submit", async (event) => {
  event.preventDefault();
  const request = requestOf(form);
  if (dialog && !(await asked(request.url))) return;
  answer.textContent = "Waiting for the response…";
  try {
    await show(request);
  } catch {
    answer.textContent = "The server cannot be reached.";
  }
});

function requestOf({ elements }) {
  const headers = {}, query = new URLSearchParams();
  let path = box.dataset.path;
  for (const { name, value, dataset } of elements) {
    if (!value) continue;
    if (dataset.in === "path") path = path.replace(`{${name}}`, encodeURIComponent(value));
    if (dataset.in === "query") query.append(name, value);
    if (dataset.in === "header") headers[name] = value;
  }
  const token = elements["try-token"]?.value.trim(), body = elements["try-body"]?.value;
  if (token) headers.Authorization = token;
  else if (box.dataset.method !== "GET") headers["X-CSRFToken"] = /(?:^|; )csrftoken=([^;]*)/.exec(document.cookie)?.[1] ?? "";
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const credentials = token ? "omit" : "same-origin";
  return { url: path + (query.size ? `?${query}` : ""), options: { method: box.dataset.method, headers, body, credentials, cache: "no-store" } };
}

function asked(url) {
  dialog.querySelector("#target").textContent = `${box.dataset.method} ${url}`;
  dialog.returnValue = "";
  dialog.showModal();
  return new Promise((resolve) => dialog.addEventListener("close", () => resolve(dialog.returnValue === "send"), { once: true }));
}

async function show({ url, options }) {
  const began = performance.now(), response = await fetch(url, options), text = await response.text();
  const took = Math.round(performance.now() - began), head = document.createElement("p"), body = document.createElement("pre");
  const status = Object.assign(document.createElement("b"), { textContent: `${response.status} ${response.statusText}` });
  head.append(status, ` in ${took.toLocaleString("en")} ms, ${text.length.toLocaleString("en")} characters`);
  body.tabIndex = 0;
  body.setAttribute("aria-label", "Response");
  body.textContent = pretty(text).slice(0, LONGEST);
  answer.replaceChildren(head, ...(text ? [body] : []));
}

function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
