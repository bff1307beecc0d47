#!/usr/bin/env node
// Starts the executable for this platform, which npm has put beside this package. Becomes it where Node can (22.15 and later);
// else passes signals on and ends as it ends: what is started here is a server, and a supervisor may talk to this process.
"use strict";
const { spawn } = require("node:child_process");
const { constants } = require("node:os");
const { name: ownName, version, optionalDependencies } = require("./package.json");

const FORWARDED = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2"];

const target = `${process.platform}-${process.arch}${isMusl() ? "-musl" : ""}`;
const wanted = `@${ownName}/${target}`;

/** Node says in a report which glibc it runs on; on musl there is none. */
function isMusl() {
  if (process.platform !== "linux" || process.report === undefined) return false;
  process.report.excludeNetwork = true;
  return process.report.getReport().header.glibcVersionRuntime === undefined;
}

function findExecutable() {
  try {
    return require.resolve(`${wanted}/cairn`);
  } catch {
    return fail(explanation());
  }
}

function explanation() {
  const targets = Object.keys(optionalDependencies).map((name) => name.split("/")[1]);
  if (!targets.includes(target))
    return `there is no Cairn for ${target}, only for ${targets.join(", ")}.${process.platform === "win32" ? " On Windows, use WSL 2." : ""}`;
  return [
    `the package ${wanted}, which has the executable for this platform, is not installed.`,
    "It is an optional dependency: --omit=optional and --no-optional leave it out, and so does a lock file or a node_modules",
    `that was made on another platform. Install again without them and here, or add it: npm install ${wanted}@${version}`,
  ].join("\n");
}

function fail(message) {
  console.error(`cairn: ${message}`);
  process.exit(1);
}

const executable = findExecutable();
const args = process.argv.slice(2);
if (typeof process.execve === "function") {
  try {
    process.execve(executable, [executable, ...args], process.env);
  } catch (error) {
    fail(`${executable} does not start: ${error.message}`);
  }
}
const child = spawn(executable, args, { stdio: "inherit" });
for (const signal of FORWARDED) process.on(signal, () => child.kill(signal));
child.on("error", (error) => fail(`${executable} does not start: ${error.message}`));
child.on("exit", (code, signal) => process.exit(signal === null ? code : 128 + constants.signals[signal]));
