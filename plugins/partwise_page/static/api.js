// Questions to the server. A refusal is an Error whose message is the server's sentence.
const tags = new Map();

export async function ask(path, values = {}) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  const answer = await fetch(`${path}?${query}`, { headers: { accept: "application/json" } });
  return read(answer);
}

// The heat-map, or null if nothing has changed since the same question was asked last.
export async function askHeat(values) {
  const query = new URLSearchParams(Object.entries(values).filter(([, value]) => value !== null && value !== undefined));
  const url = `heat?${query}`;
  const headers = { accept: "application/json" };
  if (tags.has(url)) headers["if-none-match"] = tags.get(url);
  const answer = await fetch(url, { headers, cache: "no-store" });
  if (answer.status === 304) return null;
  const found = await read(answer);
  tags.clear();
  tags.set(url, answer.headers.get("etag"));
  return found;
}

export const forgetHeat = () => tags.clear();

export async function send(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  return read(answer);
}

async function read(answer) {
  let found = null;
  try {
    found = await answer.json();
  } catch {
    // not JSON: a proxy's page, perhaps
  }
  if (answer.status === 401) throw new Error("You are not logged in any more; log in to Airflow and load this page again.");
  if (!answer.ok) throw new Error(typeof found?.detail === "string" ? found.detail : `The server answers ${answer.status}.`);
  return found;
}

// Airflow's own interface, with the same cookie. Without Airflow (or without the right) there is nothing to show.
export async function askAirflow(path) {
  try {
    const answer = await fetch(`${base()}/api/v2/${path}`, { headers: { accept: "application/json" } });
    return answer.ok ? await answer.json() : null;
  } catch {
    return null;
  }
}

export const base = () => location.pathname.replace(/\/partwise\/.*$/, "");
