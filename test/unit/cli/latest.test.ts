import { expect, test } from "bun:test";
import { compareVersions, fetchLatest, upgradeCommand } from "../../../src/cli/latest.ts";

const RELEASES = new URL("https://cairn.example.com/releases/");

test.each([
  ["/Users/ada/.npm/_npx/0a1b/node_modules/@cairn-server/linux-x64/cairn", "npx cairn-server@1.2.3 serve"],
  ["/usr/lib/node_modules/cairn-server/node_modules/@cairn-server/linux-x64/cairn", "npm install --global cairn-server@1.2.3"],
  ["/Users/ada/.bun/install/global/node_modules/@cairn-server/linux-x64/cairn", "bun add --global cairn-server@1.2.3"],
  ["/srv/app/node_modules/@cairn-server/linux-x64/cairn", "npm install cairn-server@1.2.3"],
  ["/opt/homebrew/Cellar/cairn/1.0.0/bin/cairn", "brew upgrade cairn"],
  ["/Users/ada/.local/bin/cairn", "curl -fsSL https://cairn.example.com/releases/install.sh | sh"],
  ["/usr/local/bin/cairn", "curl -fsSL https://cairn.example.com/releases/install.sh | CAIRN_INSTALL_DIR=/usr/local/bin sh"],
  ["/srv/it's mine/cairn", String.raw`curl -fsSL https://cairn.example.com/releases/install.sh | CAIRN_INSTALL_DIR='/srv/it'\''s mine' sh`],
])("an executable at %s is upgraded with %s", (executable, command) => {
  expect(upgradeCommand("1.2.3", RELEASES, { executable, home: "/Users/ada", isContainer: false })).toBe(command);
});

test("in a container the image is replaced, and an address stays one word of the shell", () => {
  const installation = { executable: "/usr/local/bin/cairn", home: "/", isContainer: true };
  expect(upgradeCommand("1.2.3", new URL("https://cairn.example.com/$(id)/"), installation)).toBe(
    "docker build --pull --tag cairn 'https://cairn.example.com/$(id)/Dockerfile'",
  );
});

test("versions are compared by their numbers", () => {
  const sorted = ["0.1.0", "0.2.0", "0.10.0", "1.0.0", "10.0.0"];
  expect(sorted.toReversed().toSorted(compareVersions)).toEqual(sorted);
  expect(compareVersions("1.2.3", "1.2.3")).toBe(0);
});

/** A server on loopback for the time of a block. */
function serving(fetch: (request: Request) => Response) {
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch });
  return { url: new URL("/releases/", server.url), [Symbol.dispose]: () => void server.stop(true) };
}

const LATEST = { version: "2.0.0", date: "2027-01-31", schema: 3 };

test("the newest version is read from one file, with a request that says nothing of who asks", async () => {
  const asked: unknown[] = [];
  using server = serving(({ method, url, headers }) => {
    asked.push([method, new URL(url).pathname, [...headers.keys()].filter((name) => !["host", "connection"].includes(name))]);
    return Response.json({ ...LATEST, archives: {} });
  });
  expect(await fetchLatest(server.url)).toEqual(LATEST);
  expect(asked).toEqual([["GET", "/releases/latest.json", []]]);
});

test("it may be elsewhere, but not after more redirects than a few", async () => {
  using server = serving(({ url }) =>
    url.endsWith("/elsewhere") ? Response.json(LATEST) : Response.redirect(url.includes("round") ? url : "/elsewhere", 302),
  );
  expect(await fetchLatest(server.url)).toEqual(LATEST);
  await expect(fetchLatest(new URL("round/", server.url))).rejects.toThrow(/latest\.json cannot be read: it leads on and on\.$/);
});

const refused: Record<string, [answer: () => Response, says: RegExp]> = {
  "is not there": [() => new Response("no", { status: 404 }), /cannot be read: it answered 404\.$/],
  "is no JSON": [() => new Response("<html>"), /does not say which version is the newest\.$/],
  "is a list": [() => Response.json([]), /does not say which version/],
  "is null": [() => Response.json(null), /does not say which version/],
  "has a version that would be a command": [() => Response.json({ ...LATEST, version: "1.0.0; reboot" }), /does not say which version/],
  "has a date that moves the cursor": [() => Response.json({ ...LATEST, date: "\u001b[2J" }), /does not say which version/],
  "has no schema": [() => Response.json({ ...LATEST, schema: "3" }), /does not say which version/],
  "does not end": [() => new Response("x".repeat(100_000)), /cannot be read: it has more than 65536 bytes\.$/],
  "is a program elsewhere": [() => Response.redirect("file:///etc/passwd", 302), /cannot be read: it leads to null\.$/],
};

for (const [what, [answer, says]] of Object.entries(refused)) {
  test(`a file that ${what} is refused with the reason`, async () => {
    using server = serving(answer);
    await expect(fetchLatest(server.url)).rejects.toThrow(says);
  });
}
