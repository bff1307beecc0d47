/**
 * The dashboard while one works on it: a saved file is in the browser at once. API requests go to a running Cairn.
 *
 *     bun scripts/dashboard-dev.ts                        http://127.0.0.1:8701/dashboard, with the API of port 8700
 *     bun scripts/dashboard-dev.ts http://127.0.0.1:9000  with that one's
 *
 * It sends neither the files nor the policy of the executable: tests look at the executable.
 *
 * @module
 */
import page from "../src/dashboard/app/index.html";

const PORT = 8701;
const [api = "http://127.0.0.1:8700"] = process.argv.slice(2);

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: PORT,
  development: { hmr: true, console: true },
  routes: { "/": Response.redirect("/dashboard"), "/dashboard": page, "/dashboard/*": page },
  fetch: (request) => fetch(new Request(request.url.replace(/^https?:\/\/[^/]+/, api), request)),
});
console.log(`${server.url.href}dashboard`);
