/**
 * What the API promises, row by row, and the tests that hold each row: every endpoint with its fields, every field of every
 * answer, every default, limit, error, header, trace and event, and what happens to a session in its life.
 *
 * A row is `name: what is promised`. Where a section is about something the product has a list of (fields of an endpoint,
 * error codes, limits …), the names are those of that list, and `spec-coverage.test.ts` says which are missing.
 *
 * @module
 */

/** `file › name of the test`. Of a name made from a template either the template stands here or one of its cases. */
export type TestName = string;

export interface Section {
  title: string;
  rows: Record<string, TestName | readonly TestName[]>;
}

const namesOf = <const Names extends Record<string, string>>(file: string, names: Names): { [Key in keyof Names]: TestName } =>
  Object.fromEntries(Object.entries(names).map(([key, name]) => [key, `${file} › ${name}`])) as { [Key in keyof Names]: TestName };

const sessions = namesOf("sessions.test.ts", {
  defaults: "a session made from an agent_id alone has every other field at its default",
  kept: "a session keeps every field it is made with, and is read as it was answered",
  nulls: "null for an optional field of a session is the same as leaving it out",
  ownFields: "what a session decides itself cannot be set: id, counters, versions and times sent along are ignored",
  largest: "the largest values that a session takes are taken",
  refused: "a session that cannot be is refused with the field that is wrong, and none is made",
  oddKeys: "keys such as __proto__ in a caller's JSON come back as they went in and touch nothing",
  listed: "sessions are listed newest first, and filters combine with AND",
  emptyList: "a list of nothing has neither a first nor a last id",
  pages: "a page of sessions has 20 unless it is asked for up to 100, and the last id leads to the next",
  hiddenPages: "a list that passes over many expired sessions ends its page early and leads on to the live ones",
  deletedCursor: "a cursor goes on working when its session has been deleted",
  refusedList: "a list of sessions asked for with a wrong parameter is refused with its name",
  patchMetadata: "PATCH merges metadata key by key, and a null removes a key",
  patchTtl: "PATCH sets a new time to live, counted from now, and leaves the rest as it is",
  refusedPatch: "PATCH refuses what a session cannot have and changes nothing",
  updatedAt: "updated_at moves with every change of state, metadata, turns and memories, and reading does not move it",
  counters: "turn_count and memory_count follow what is added and deleted",
  deleted: "deleting a session answers what was deleted, and from then on it is not found",
  notFound: "an id that no session has, or that none could have, is not found",
  cascade: "deleting a session removes its states, turns and memories, and nobody else's",
  largeCascade: "the memories of a large session are gone the moment its deletion is answered, by id, list, search and context",
  manyStates: "deleting a session with hundreds of states and turns removes them all",
  fork: "a fork starts from the current state with agent, user, metadata and time to live of its source, and no turns or memories",
  forkVersion: "a fork takes any version of its source, and the two go their own ways",
  forkNotFound: "a fork of a version that does not exist is 404 version_not_found, and none is made",
});

const versions = namesOf("versions.test.ts", {
  update: "a state update replaces the state entirely, as the next version, and answers the session",
  rollback: "a rollback answers 200 with the whole session",
  rollbackTo: "a rollback takes any version there is: the initial one, the current one, or one counted back from it",
  rollbackNotFound: "a rollback to a version that does not exist is 404 version_not_found, and nothing changes",
  refused: "a state update or rollback that makes no sense is refused with the field that is wrong, and makes no version",
  expected:
    "expected_version lets an update or rollback through only from that version; otherwise 409 version_conflict and nothing changes",
  race: "of many agents that update from the same version at once exactly one succeeds",
  gapless: "versions are numbered 0, 1, 2 … without gaps, in whatever order updates arrive",
  listed: "the versions of a session are listed newest first, with who made each and why, without their states",
  read: "a version is read with its state, which no later change touches",
  notFound: "a version that does not exist is 404 version_not_found, whatever stands in its place",
  pages: "versions are paged by number",
  refusedList: "a list of versions asked for with a wrong parameter is refused with its name",
  oddKeys: "keys such as __proto__ go through an update, a rollback and a version as they came",
});

const turns = namesOf("turns.test.ts", {
  large: "records too large to be in memory together come on several pages, and a context shows the newest of them",
  defaults: "a turn with input and output alone has every other field at its default",
  kept: "a turn keeps every field it is added with, and is read as it was answered",
  nulls: "null for an optional field of a turn is the same as leaving it out, and unknown fields are ignored",
  numbers: "turns are numbered from 1 in the order of their ids, however many arrive at once",
  snapshots: "adding a turn never changes the state: its snapshots are only kept",
  types: "every type of input and output is accepted, and tool_response is read as tool_result",
  refused: "a turn that cannot be is refused with the field that is wrong, and none is counted",
  notFound: "a turn is found in its own session only",
  order: "turns are listed newest first unless order is asc",
  pages: "a page of turns has 20 unless it is asked for up to 100, and the cursor works in both orders",
  goneCursor: "a cursor that no turn of the session has still says where to go on",
  refusedList: "a list of turns asked for with a wrong parameter is refused with its name",
});

const memories = namesOf("memories.test.ts", {
  defaults: "a memory of a content alone has every other field at its default, and a vector",
  kept: "a memory keeps every field it is added with, and is read as it was answered",
  nulls: "null for an optional field of a memory is the same as leaving it out, and what it decides itself cannot be set",
  largest: "the largest values that a memory takes are taken, counted in code points",
  earlyPages: "a list whose filters rarely meet ends its page early, and the pages together have what passes",
  types: "the six standard types are taken, and any other of 1 to 64 characters",
  refused: "a memory that cannot be is refused with the field that is wrong, and nothing is added",
  tooLarge: "content over 10,000 characters is too large, added or changed to",
  liveSession: "a memory belongs to a live session: to none, a malformed one or one that was deleted nothing can be added",
  notFound: "a memory that is not there is not found, whatever its id looks like",
  newVector: "changing a content makes a new vector under a new embedding_id, and keeps everything else",
  sameVector: "a change that leaves the content as it is leaves its vector as it is",
  merged: "metadata is merged key by key at its top level; a null removes the key",
  mergedTooLarge: "metadata that would grow too large by merging is refused, and nothing changes",
  refusedChange: "a change to what cannot be is refused with the field that is wrong, and nothing changes",
  notEmbedded: "a memory that is not to be embedded has no vector, is found by list and id but not by search, and stays so",
  deleted: "a deleted memory is gone: from its id, lists, search and the store",
  listed: "memories are listed newest first; filters combine with AND, tags with OR among themselves",
  repeatedTags: "a tag with a comma in it is listed by where each tag has a parameter of its own",
  emptyList: "a list of no memories has neither a first nor a last id",
  pages: "a page of memories has 20 unless it is asked for up to 100; the last id leads on, also when it is deleted",
  refusedList: "a list that cannot be given is refused with the parameter that is wrong",
  listOfNoSession: "a list of a session that is not there is not found",
});

const search = namesOf("search.test.ts", {
  answer: "a search answers the query as it was sent and what it found, with these fields and no others",
  atOnce:
    "of the searches and contexts that keys ask for at once, each key's few are under way, and those of others do not wait behind them",
  scores: "a memory is found by its own text with score 1, and by what shares its words or its meaning with less",
  order: "the best come first, and of equal ones the newest",
  limit: "ten are found unless a limit of up to 50 is asked for",
  threshold: "nothing below the threshold is found: 0.7 unless another is asked for",
  all: "with a threshold of 0 nothing is left out, however little it has to do with the query",
  nothing: "a query of nothing finds nothing, unless with a threshold of 0: then all, the newest first with score 0",
  signs: "a query of signs alone finds the memories that hold them, among thousands too",
  filters: "filters combine with AND, tags with OR among themselves; without any, all memories are searched",
  explain: "explain adds why to each result, and changes nothing else",
  explainLong: "of a long query explain shows the words that cover most, shortened, and how many more there are",
  refused: "a search that cannot be made is refused with the field that is wrong",
  noSession: "a search in a session that is not there, has expired or was deleted is not found",
  noTrace: "a search leaves no trace and changes nothing",
});

const context = namesOf("context.test.ts", {
  empty: "the context of a new session is its state and nothing else, with or without a body",
  answer: "a context holds the current state, the memories and the latest turns, with these fields and no others",
  limits: "five memories and ten turns come unless others are asked for: up to 20 and 50, and as few as none",
  turns: "turns come newest first",
  query: "with a query the best memories come first and none is too far; without one, or with one of nothing, the newest with score 0",
  users: "a session with a user sees all memories of that user, and never another's",
  explain: "explain adds why to each memory that a query found, and changes nothing else",
  state: "a state is what it is now: after updates and rollbacks",
  refused: "a context that cannot be given is refused with the field that is wrong",
  noSession: "there is no context of a session that is not there, has expired or was deleted",
  noTrace: "reading a context leaves no trace and changes nothing",
});

const traces = namesOf("traces.test.ts", {
  fields: "a trace says what happened, to what, by whom and when, and under which request id",
  latency: "latency_ms is how long the request had taken when its trace was written",
  noUser: "a trace has no user_id when its session has none",
  actor: "the actor of a trace is the first 8 characters of the key that acted",
  none: "reading, a refused change and a replayed one leave no trace",
  readOnly: "traces are read only",
  listed: "traces are listed newest first, and session, user and action filters combine with AND",
  times: "created_after and created_before leave out the very time they name, and combine with the other filters",
  offsets: "an instant may have an offset or none, which is UTC",
  refusedList: "a list of traces asked for with a wrong parameter is refused with its name",
  pages: "a page of traces has 20 unless it is asked for up to 100, and the cursor keeps to the bounds of time",
  notFound: "a trace that was never there is 404 trace_not_found",
  outlive: "traces outlive their session; for them session_id is only a filter",
  free: "a trace left by a key of the tier free is gone after 7 days, and not before",
  pro: "a trace left by a key of the tier pro is gone after 90 days, and not before",
  enterprise: "a trace left by a key of the tier enterprise is gone after 365 days, and not before",
  retentionSetting: "traces that enterprise keys leave are kept as long as trace_retention_days says when they are left",
});
const traceOf = (action: string, ...cases: string[]) =>
  cases.map((name) => `traces.test.ts › the trace of ${action} has its details: ${name}`);
const adminTraces = namesOf("admin-traces.test.ts", {
  atOnce: "a webhook that is changed and disabled at once leaves a trace of each",
  none: "what is refused, changes nothing, or is asked for twice with one Idempotency-Key leaves no further trace",
  noSecret: "no secret is in any trace: neither of keys, nor of webhooks, nor of the embedding provider",
  bySystem: "a webhook that the service disables leaves a trace of the system's, with the reason",
  hidden: "only a key with the scope admin sees them, in no list, under no filter, and not by id",
  commands: "a start leaves traces of the keys that it makes, and a command beside the server of those it makes, rolls and revokes",
  retention: "they are kept as long as the acting key's tier says, and their rows go with their day",
  events: "a webhook that wants every trace gets these too, except that of its own creation",
  together: "a trace goes with its change: a commit that fails leaves neither",
});
const adminTraceOf = (action: string, ...cases: string[]) =>
  cases.map((name) => `admin-traces.test.ts › ${name} leaves the trace ${action} of no session`);

const expiry = namesOf("expiry.test.ts", {
  onTime: "a session is there until its time has come, and not found from that moment on, whether or not it was removed yet",
  listed: "a list passes over sessions that have expired",
  knowledge: "expiry ends the conversation, not the knowledge: states and turns go, memories stay",
  trace: "the trace of an expiry is the system's, with the time to live and the last activity",
  noActivity: "activity does not extend the time to live",
  patch: "PATCH of ttl_seconds extends or shortens the time to live, and the removal follows it",
  once: "however many sessions expire at once, each is removed and traced once, however often the task runs",
  setting: "with memories_on_expiry set to delete, the memories of a session go when it is removed, however many",
});

const clock = namesOf("clock.test.ts", {
  order: "over a clock that goes back, and a restart behind it, ids rise and every list keeps its order; times are the clock's",
  ahead: "after one write 30 years ahead and a restart sessions end, traces and kept answers go, and times are the clock's",
  filters: "created_after and created_before go by the times of traces, sessions and memories, also where their ids are ahead",
  deliveries: "deliveries are kept for 7 days and tried when they are due, also after a clock that was 30 years ahead",
  anyTime: "no time that a clock can show leads to an answer outside the error format",
  lastId: "a store that holds the very last id refuses what needs one with 503, and is read all the same",
});

const events = namesOf("events.test.ts", {
  asItWas: "an event carries the record as it was then, whatever happens to it later",
  memoryChanges: "changing and deleting a memory leave the event of their trace alone",
  none: "reading, a refused change and a replayed one leave no event",
  order: "events are in the order of the changes, also when these come all at once and after a restart",
  together: "a change that is not committed leaves neither trace nor event",
  unwanted: "events that nobody wants do not pile up",
});
const eventsOf = (change: string, ...types: string[]) =>
  `events.test.ts › ${change} leaves the events ${types.join(", ")}, with the affected record and the trace`;
const CREATED = [
  eventsOf("create session", "session.created", "trace.created"),
  eventsOf("fork", "session.created", "trace.created"),
] as const;
const ROLLED_BACK = eventsOf("rollback", "session.updated", "trace.created", "trace.rollback");

const webhooks = namesOf("webhooks.test.ts", {
  wanted: "a webhook gets the events it wants, from its creation on, and every webhook that wants one gets it with the same id",
  order: "the events of a session are delivered in the order of its changes, one at a time",
  woken: "a commit wakes the delivery; nothing is asked for and no time passes",
  unwanted: "what nobody wants leaves no delivery behind, and a disabled webhook gets nothing of what happens meanwhile",
  schedule: "what fails is tried again after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h and 10 h, with the same id, and then given up",
  ownSchedule: "the operator's schedule takes the place of ours",
  setSchedule: "a schedule that is set holds from the next failure on, without a restart; a wait that has begun stays as it is",
  setTimeout: "a time limit that is set holds for the next attempt, without a restart",
  setPrivate:
    "what is set of private targets holds at once, for a URL that is set and for the next attempt; metadata services stay refused",
  answers: "what a receiver answers is shown to admin keys alone, as text whatever bytes it is of, and stands in no log",
  atOnce: "events of 400 sessions are delivered eight at a time: in an eighth of the time that they take one after another",
  blocked: "a session for which the receiver hangs blocks only itself",
  shownOutside: "what a receiver answered is kept for public addresses only, not for this machine nor for a private network",
  held: "while an event waits for a retry that is near, later ones of its session wait too; other sessions go on",
  keepsOrder: "a retry that succeeds keeps the order of its session",
  retryAfter: "Retry-After puts off everything for a receiver that is overloaded, over a restart too, and keeps the order of a session",
  gone: "410 disables a webhook at once; what it is still owed waits until it is enabled again",
  failing: "a webhook with nothing but failures for 5 days is disabled and says so; one that delivers in between is not",
  redirect: "a redirect is a failure and is not followed",
  hanging: "a receiver that does not answer within 15 s has failed; any number of them hold up neither requests nor other receivers",
  stopped: "a stop ends attempts under way at once; they are made again after the start, with the same id",
  restarts: "a restart at any point loses nothing: between commit and outbox, outbox and attempt, attempt and retry",
  targetsHere: "on loopback: a URL that leads where it must not is refused when it is set and when it is changed",
  targetsOutside: "beyond loopback: a URL that leads where it must not is refused when it is set and when it is changed",
  targetsAnywhere: "where private targets are allowed: a URL that leads where it must not is refused when it is set and when it is changed",
  moved: "a name that leads elsewhere later is not followed there",
  kept: "a webhook keeps what it is made with; the secret is in that answer only",
  patch: "a PATCH changes what it names and nothing else",
  refused: "a webhook that cannot be is refused with the field that is wrong, and none is made",
  listed: "webhooks and deliveries are listed newest first, in pages",
  notFound: "what is not there is 404, and a delivery is its own webhook's alone",
  scopes: "all of it needs the scope admin",
  deleted: "a deleted webhook gets nothing more, and what it was owed is removed",
  test: "a test sends the webhook itself, once, whether it arrives or not; the deliveries show what came back",
  retry: "a retry by hand is made at once, with all its retries, under the same id, whatever became of the delivery",
  disabled: "nothing is sent to a disabled webhook, by hand neither",
  rotation: "after a rotation both secrets verify for 24 hours, then the new one alone",
  ownSecret: "a rotation to a secret of one's own; one that cannot be used changes nothing",
  replay: "a replay makes no second webhook, rotation or test, and gives the first answer",
  most: "there can be 100 webhooks and no more",
  secret: "a secret stands in no other answer, no log, no trace, no kept answer and no other file than the store",
  retention: "deliveries are kept for 7 days, made or not, and what they posted goes with them",
});
const toldAs = (change: string, ...types: string[]) =>
  `webhooks.test.ts › ${change} is told as ${types.join(", ")}: the affected record, signed twice`;
const PROCESS_SETTINGS =
  "process/webhooks.test.ts › what the environment says is in force and shown as such; what is set through the API wins, at once and after a restart";
const signatures = namesOf("unit/webhooks/signature.test.ts", {
  plain: "the plain signature is the hex HMAC-SHA256 of the body, keyed with the secret's text as it stands",
  example: "the signature that Standard Webhooks has as its example is ours too",
  verified: "somebody else's library verifies it, for a secret of either form",
});

const durability = namesOf("process/durability.test.ts", {
  relaxed:
    "relaxed: after a power cut what was answered a second before is there, whole and without gaps, and a strict start takes it over",
  back: "a data directory goes from strict to relaxed and back as often as one likes, and keeps everything",
});

const settings = namesOf("settings.test.ts", {
  atFirst: "without any setting everything has its default, and says so",
  changed: "a change is answered with all settings, leaves the others as they are, and survives a restart",
  together: "changes at the same time all stand",
  memories: "what is said of the memories of expired sessions holds from then on",
  traces: "traces are kept as long as was set when they were made",
  body: "a larger or smaller body is taken as soon as it is set",
  environment: "the environment is named where a value comes from it; a setting wins over it, and an empty text goes back to it",
  nulls: "a null takes a setting back to its default, whichever it is; a group that is null is left as it is",
  region: "the region is that of the environment unless one is set; /health says at once which it is",
  noRegion: "without a region /health names none; one that is set is still there after a restart",
  webhooks: "what the environment says of webhooks is shown as its own; a setting wins over it until it is taken back",
  warned: "that webhooks may lead into private networks stands in the log as a warning, once",
  unknown: "a name that is no setting is refused with what is one, and nothing of the request is set",
  unchanged: "a change that changes nothing is answered with the settings and leaves no trace, log line or row",
  refused: "what cannot be a setting is refused by its name, and nothing of the change is made",
  scope: "only an admin key sees and changes settings",
  replay: "a change with an idempotency key is one commit with its answer, and a replay changes nothing",
  unwritten: "a change that cannot be written is not in force either",
  logged: "a change stands in the log with who made it and what was changed, without the values",
});

const lists = namesOf("lists.test.ts", {
  foreign: "a filter that another list has is refused by a list without it, one that no list has is ignored",
  created: "created_after and created_before leave out the very time they name, and are refused where they are none",
});

const unchanged = namesOf("unchanged.test.ts", {
  session: "a PATCH of a session that changes nothing is answered with the session and writes nothing",
  memory: "a PATCH of a memory that changes nothing is answered with the memory and writes nothing",
  webhook: "a PATCH of a webhook that changes nothing is answered with the webhook and writes nothing",
});

const quotas = namesOf("quotas.test.ts", {
  versions: "of a session's versions the newest are kept, and the initial one; what was removed is said to be",
  lowered: "a lower state_versions_kept takes effect a few versions at a time, a higher one brings none back",
  store: "beyond max_store_bytes records are refused and what makes room is not, until there is room again",
  replayed: "an answer that was given before the store was full is given again for its Idempotency-Key",
});

const operating = namesOf("operating.test.ts", {
  requests: "metrics count requests by route, method and status, and say how long they took",
  records: "metrics say what is in the store, and what is overdue",
  deliveries: "metrics say what became of deliveries, and what is still to be done",
  types: "metrics are typed: what only rises is a counter",
  index: "metrics say how far the index is behind the memories, and how large the store is",
  cors: "pages of an origin that the operator named may call, after asking; others may not",
  scope: "metrics are for admin keys, or open to everybody who comes through no proxy",
});

const disk = namesOf("process/disk.test.ts", {
  refuses: "a write that the disk refuses is answered 503 and leaves nothing; reading goes on, and writing once the disk takes it",
  readOnly:
    "while no file takes a byte, as on a disk that has become read-only, reads go on and writes are refused with the reason; then they work again",
  cannotGrow: "where the address space is limited a store that cannot grow refuses writes and goes on reading, and grows again when it may",
  full: "on a full disk writes are answered 503 and reads go on, a start succeeds, and writing works again when there is room",
  otherProvider: "on a full disk a start succeeds with another embedding provider too, and its vectors are made when there is room",
});

const powerCut = namesOf("process/power-cut.test.ts", {
  order: "the answer to every kind of write is sent after its pages are flushed and the page that refers to them is on the disk",
  survives: "what was acknowledged is there after every power cut, whole and once; what was not is there once or not at all",
});

const failingDisk = namesOf("process/failing-disk.test.ts", {
  panic:
    "when a write of LMDB's meta page fails all is answered 503, also readiness; the server says so once, ends with a code of its own, and a new start has what was acknowledged",
  readiness:
    "while changes fail the server is not ready but alive, and reads go on; it is ready again once the disk takes what is written, without a client's change",
  probes: "asking for health writes nothing, and a disk that fails is tried every few seconds however often it is asked",
  relaxed:
    "relaxed: a flush that fails is answered 503 that says nothing is known, and keeps neither a command nor the server from ending, nor a strict start from serving reads",
  slow: "while the disk takes seconds for a change the server is not ready and reads go on; the change is acknowledged in the end",
});

const keys = namesOf("keys.test.ts", {
  defaults: "a key made without fields reads and writes, is of the tier free and never ends",
  kept: "a key keeps every field it is made with; the key itself is in that answer only",
  tiers: "a tier brings its rate limit; only an enterprise key may have one of its own",
  refused: "a key that cannot be is refused with the field that is wrong, and none is made",
  listed: "keys are listed newest first, in pages; the first one is an enterprise key with the scope admin",
  notFound: "a key that is not there is 404 resource_not_found",
  readScope: "a key with the scope read may do what needs read, and all else is 403 permission_denied",
  writeScope: "a key with the scope write may do what needs write, and all else is 403 permission_denied",
  adminScope: "a key with the scope admin may do what needs read, write, admin, and all else is 403 permission_denied",
  refusedRequest: "a refused request changes nothing, and what it needs is checked before what it says",
  sameRecords: "all keys see the same records",
  revoked: "from the moment a key is revoked no request with it passes, after a restart too",
  ends: "a key with an end works until that moment and not from it on",
  replay: "a replay of the request that made a key gives the same key, and makes no other",
  deletedStays: "a key of CAIRN_API_KEY that was deleted is not registered again, here, in a backup or in an export, and a start says so",
  secret: "no key stands in full in any file of the data directory or line of the log, whatever it was used for",
  rolled: "a rolled key has a successor with its name, scopes, tier, rate limit and end, shown in full this once",
  overlapDefault: "a rolled key goes on working beside its successor until the overlap is over: a day unless it is said",
  overlapSaid: "a rolled key goes on working beside its successor until the overlap is over: as long as is said",
  overlapMost: "a rolled key goes on working beside its successor until the overlap is over: at most seven days",
  noOverlap: "a key rolled without overlap is refused from the answer on, the caller's own too",
  rolledEnd: "an overlap never lets a key work for longer than it would have; the successor ends when it would have, or as is said",
  refusedRoll: "a roll that cannot be is refused with the field that is wrong, and nothing changes",
  rolledGone: "a key that is not there, was revoked or has ended cannot be rolled: 404 resource_not_found",
  rolledOnce: "a key is rolled once, however many ask at once; who comes late is told of its successor, which can be rolled",
  rolledAgain: "however often and at once a roll is sent with one Idempotency-Key, one key comes of it, and every answer has it",
  rolledScopes: "nobody makes a key with more scopes by rolling one",
  lastAdmin: "the last admin key that works is revoked, or given an end, only with force",
  lastUse: "last_used_at is null until a request comes with the key, then when the last one did, whatever became of it",
  lastUseKept: "last_used_at survives a stop at once, and anything else once the task has come by",
  lastUseWritten: "last uses are written together, once a minute, and nothing is written when there were none",
  lastUseAlone: "writing last uses changes nothing else: what was revoked stays so, and what another process changed stays changed",
  lastUseRefused: "a last use that the disk does not take is shown all the same, written the next time, and keeps no stop from ending",
  lastUseMany: "more keys than one commit takes are all written: the task comes back for them at once, and a stop does not leave them",
});

const authentication = namesOf("authentication.test.ts", {
  header: "a key is taken from X-API-Key",
  bearer: "a key is taken from a bearer token",
  missing: "a request without a key is refused: nothing",
  invalid: "an invalid key is refused: one that was never given",
  inQuery: "a key in the query is no key: api_key",
  nothingToldApart: "without a key nothing can be told apart: what exists, what does not, what is wrong",
  open: "the state of the server and its docs are for everyone",
  scopes: "a key may do what its scopes say, on every endpoint, and admin implies the others",
});

const rateLimit = namesOf("rate-limit.test.ts", {
  free: "a free key may make 200 requests at once and 100 a minute from then on",
  pro: "a pro key may make 2000 requests at once and 1000 a minute from then on",
  enterprise: "an enterprise key has 60,000 a minute and 120,000 at once, unless it was given limits of its own",
  headers: "the headers say what is left and when the bucket is full again",
  refusal: "a refusal says how long to wait, and then there is a request again",
  perKey: "every key has its own limit, and requests without one have theirs",
  everyAnswer: "an answer of ${status} carries the headers of its limit (case ${i + 1})",
});

const http = namesOf("http.test.ts", {
  requestId: "every answer has a request id: the client's own, or a new one",
  json: "no answer of the API is taken for anything but JSON",
  noStore: "no answer of the API is for a cache to keep, whatever its status",
  head: "a HEAD is answered as the GET would be",
  indexFailed: "while the vector index has failed the server is not ready, but alive",
  ourFault: "a fault of ours is told to the operator, and to the client only that there was one",
  methods: "a method that a path does not know is 405 with those it knows, on every path",
  noBody: "where everything is optional, no body, an empty one and an empty object are the same",
  host: "the Host has to be a name of the server's, or one that its operator added",
  noVersion: "a GET of /v2/sessions is 404 resource_not_found",
});
const keptSecret = (request: string) =>
  `idempotency.test.ts › a secret is given again to who asks again, across a restart too, and is kept encrypted: ${request}`;
const errorShape = (error: string) => `http.test.ts › an error is told in one shape: ${error}`;
const bodyOf = (name: string, status: number) => `http.test.ts › a body of ${name} is ${status}`;

const badInput = namesOf("bad-input.test.ts", {
  bodies: "a body that is wrong is refused by the name of its field, and nothing changes",
  nulls: "a null for an optional field is as if it were not there",
  unknown: "unknown fields are ignored, and none of the service's own can be set",
  depth: "a caller's JSON nests up to 64 levels, wherever it stands",
  metadataBytes: "metadata is at most 64 KiB of JSON, counted in bytes, also after merging",
  lengths: "lengths count characters as people do: an emoji is one",
  oddKeys: "keys that mean something to JavaScript are keys like any other: they come back and touch nothing",
  wholeNumber: "a whole number that would be kept as another one is refused by its path, wherever a caller's own JSON stands",
  limit: "a limit outside 1 to 100, or that is no plain integer, is refused and not bent: /v1/sessions",
  cursor: "a cursor that is no id of the list's kind is refused: /v1/sessions",
});

const idempotency = namesOf("idempotency.test.ts", {
  reads: "the answer of a read is never kept: it is run again, and what was deleted is not given again",
  unchanged: "a change that found nothing to change is not made when it is sent again",
  replay: "a replay is the first answer byte for byte, under the new request's own id",
  everyChange: "sent again, it is answered again and nothing changes: create a session",
  onPatch: "sent again, it is answered again and nothing changes: update a session",
  other: "a key that was used cannot be used for another request: ${name}",
  copies: "a hundred copies sent at once are one change with one answer",
  failures: "failures are not kept: the key may be tried again, with another body too",
  hours: "an answer is kept for 24 hours to the millisecond; then the key is free",
  restart: "an answer is kept across a restart",
  perKey: "a key belongs to the API key it came with: others neither see nor block it",
  notOnOthers: "GET, DELETE and reads by POST take no notice of a key",
  shape: "a key may be any printable text: ${JSON.stringify(key.slice(0, 40))} (${key.length})",
  otherShape: "a key may be nothing else: ${JSON.stringify(key.slice(0, 40))} (${key.length})",
});

const sockets = namesOf("sockets.test.ts", {
  bodyLimit: "a body that declares more than the limit is refused before any of it is sent, however large",
  chunkedLimit: "a chunked body is refused at the limit, without waiting for its end",
  wholeLimit: "a body of exactly the limit is accepted, declared or in chunks",
  halfClosed: "a client that hangs up before its answer has its change made, once",
  lateBody: "a body that is not complete when its time is up is refused, and its connection closed",
  answerMemory: "answers that are not read take no more memory than there is for them, nor one key all of it",
  bodyMemory: "bodies that are not complete take no more memory than there is for them, nor one key all of it",
  perAddress: "requests without a key share one rate limit per address, and no client with a key is held up by them",
});

const bodies = namesOf("unit/http/body.test.ts", {
  wholeNumbers: "a whole number is kept or refused: none comes back as another one",
  memory: "a body without a declared length takes its share of the memory for bodies as it comes, and gives it back",
});

const memory = namesOf("process/memory.test.ts", {
  unread: "answers that nobody reads take a part of the memory that they would all take",
  tinyChunks: "a body in chunks of one byte takes memory for its bytes, not for its chunks",
});

const models = {
  sessionPages: "model/pagination.test.ts › the pages of sessions list each session once",
  memoryPages: "model/pagination.test.ts › the pages of memories list each memory once",
  tracePages: "model/pagination.test.ts › the pages of traces list each trace once, also those of sessions that are gone",
  versions:
    "model/versions.test.ts › any sequence of updates, rollbacks, stale writes, forks and restarts leaves the versions of the model",
  counters: "model/counters.test.ts › turn_count and memory_count equal the lists, for any mix of changes at once, deletions and expiry",
  ids: "model/ids.test.ts › ids rise and never repeat, when the clock stands, jumps ahead, goes back or the process starts anew",
  diff: "model/diff.test.ts › a diff applied to what was gives what is",
};
const idShape = "unit/lib/ids.test.ts › an id is its prefix, an underscore and 12 letters or digits, and nothing else";
const instants = "unit/lib/time.test.ts › an instant with an offset, or without one in UTC, is read to the millisecond";
const noInstants = "unit/lib/time.test.ts › anything else is no instant, days and hours that do not exist included";

export const SPECIFICATION: readonly Section[] = [
  {
    title: "Conventions",
    rows: {
      "bodies: JSON with Content-Type application/json; anything else is 400": [
        bodyOf("JSON", 201),
        bodyOf("JSON with a charset", 201),
        bodyOf("a form", 400),
        bodyOf("JSON called nothing", 400),
        bodyOf("no JSON", 400),
      ],
      "object bodies: a body that is no object is 400": bodyOf("an array", 400),
      "answers: JSON, and named so": http.json,
      "timestamps: ISO 8601, UTC, milliseconds, Z": sessions.defaults,
      "instants in: any offset, none is UTC": [instants, traces.offsets],
      "other instants: 400": [noInstants, traces.refusedList],
      "object: a single record says what it is": [sessions.defaults, turns.defaults, memories.defaults, traces.fields, keys.defaults],
      "null: the same as leaving an optional field out": [badInput.nulls, sessions.nulls, turns.nulls, memories.nulls],
      "unknown fields: ignored": [badInput.unknown, sessions.ownFields, turns.nulls],
      "types: strict, text is no number": [badInput.bodies, versions.refused],
      "query numbers: plain decimal integers": badInput.limit,
      "whole numbers: kept exactly, or refused with their path": [bodies.wholeNumbers, badInput.wholeNumber],
      "lengths: Unicode code points": [badInput.lengths, sessions.largest, memories.largest],
      "odd keys: __proto__ and the like are keys like any other": [badInput.oddKeys, sessions.oddKeys, versions.oddKeys],
      "metadata: at most 64 KiB": badInput.metadataBytes,
      "depth: user JSON nests at most 64 levels": [badInput.depth, sessions.largest, sessions.refused],
      "record ids of the wrong shape: not found": [sessions.notFound, turns.notFound, memories.notFound, traces.notFound, keys.notFound],
      "limit: over its maximum is 400, not clamped": [badInput.limit, sessions.refusedList],
      "lists: newest first everywhere": [sessions.listed, versions.listed, turns.order, memories.listed, traces.listed, keys.listed],
      "embeddings: 1536 numbers": [
        "spec-coverage.test.ts › embeddings have 1536 numbers",
        "unit/embeddings/local.test.ts › every text has a vector of unit length and ascending terms",
      ],
      "version: the first segment of the path is v1": http.noVersion,
      "HEAD: as a GET, without the body": [
        http.head,
        "sockets.test.ts › a HEAD is a GET without the body, so that the next answer is in its place",
      ],
    },
  },
  {
    title: "Ids",
    rows: {
      "sess: sess_ and 12 characters": [sessions.defaults, idShape],
      "turn: turn_ and 12 characters": [turns.defaults, idShape],
      "mem: mem_ and 12 characters": [memories.defaults, idShape],
      "trace: trace_ and 12 characters": [traces.fields, idShape],
      "emb: emb_ and 12 characters": [memories.defaults, idShape],
      "evt: 12 characters in the outbox": [CREATED[0], idShape],
      "whk: whk_ and 12 characters": [webhooks.kept, idShape],
      "dlv: dlv_ and 12 characters": [webhooks.test, idShape],
      "key: key_ and 12 characters": [keys.defaults, idShape],
      "req: req_ and 12 characters": [http.requestId, idShape],
      "order: by time, rising, never twice": [models.ids, clock.order],
      "clock: ids ahead of it leave times, ends and filters alone": [clock.ahead, clock.filters, clock.deliveries],
      "clock: any time is answered in the error format": [clock.anyTime, clock.lastId],
    },
  },
  {
    title: "List",
    rows: {
      "object: list": [sessions.listed, turns.order, memories.listed, traces.pages, versions.listed],
      "data: the records": [sessions.listed, turns.order, memories.listed],
      "has_more: whether there are more": [sessions.pages, turns.pages, memories.pages, traces.pages, versions.pages],
      "first_id: of the page, null when it is empty": [sessions.pages, sessions.emptyList, turns.order, memories.emptyList],
      "last_id: of the page, null when it is empty": [sessions.pages, sessions.emptyList, turns.order, memories.emptyList],
      "last_id of a page that ended early: how far the search has come": [sessions.hiddenPages, memories.earlyPages],
      "starting_after: the last id of the page before leads to the next": [
        models.sessionPages,
        models.memoryPages,
        models.tracePages,
        turns.pages,
        versions.pages,
      ],
      "deleted cursor: still works": [sessions.deletedCursor, turns.goneCursor, memories.pages, keys.listed],
      "cursor of the wrong shape: 400": [badInput.cursor, sessions.refusedList, turns.refusedList, traces.refusedList],
      "limit: 20 unless given, at most 100": [sessions.pages, turns.pages, memories.pages, traces.pages, versions.pages],
    },
  },
  {
    title: "Session",
    rows: {
      "object: session": sessions.defaults,
      "id: sess_ and 12 characters": sessions.defaults,
      "agent_id: as given": sessions.kept,
      "user_id: as given, null when none was": [sessions.kept, sessions.defaults],
      "created_at: when it was made": sessions.defaults,
      "updated_at: moves on state, metadata, turn and memory changes": sessions.updatedAt,
      "state: the current one, {} at first": [sessions.defaults, versions.update],
      "state_version: the number of the current state": [sessions.defaults, versions.update, models.versions],
      "metadata: custom": sessions.kept,
      "memory_count: memories attached": [sessions.counters, models.counters],
      "turn_count: turns in it": [sessions.counters, models.counters],
      "ttl_expires_at: when it expires": [sessions.defaults, sessions.kept],
    },
  },
  {
    title: "StateVersion",
    rows: {
      "object: version": versions.listed,
      "version: 0 is the initial state, then 1, 2 … without gaps": [versions.gapless, models.versions],
      "created_at: when it was made": versions.listed,
      "reasoning: left out when none was given": versions.listed,
      "actor: the key that made it": versions.listed,
      "source: initial, update or rollback": versions.listed,
      "state: in the single version, not in lists": [versions.read, versions.listed],
    },
  },
  {
    title: "Memory",
    rows: {
      "object: memory": memories.defaults,
      "id: mem_ and 12 characters": memories.defaults,
      "session_id: its session": memories.defaults,
      "content: 1 to 10,000 characters": [memories.largest, memories.tooLarge],
      "type: general unless given; the six standard ones and any other of 1 to 64 characters": [memories.defaults, memories.types],
      "tags: as given, none by default": [memories.kept, memories.defaults],
      "metadata: custom": memories.kept,
      "created_at: when it was added": memories.defaults,
      "embedding_id: present if there is a vector": [memories.defaults, memories.notEmbedded],
      "vector_available: whether search finds it": [memories.defaults, memories.notEmbedded],
    },
  },
  {
    title: "MemoryResult",
    rows: {
      "id: of the memory": search.answer,
      "session_id: its session": search.answer,
      "content: its text": search.answer,
      "type: its type": search.answer,
      "tags: its tags": search.answer,
      "score: 0.0 to 1.0, higher is more relevant": [search.answer, search.scores],
      "created_at: when it was added": search.answer,
      "explanation: only if asked for": search.explain,
    },
  },
  {
    title: "Explanation",
    rows: {
      "semantic: the part of nearness in meaning": search.explain,
      "lexical: the part of words": search.explain,
      "matches: which words met which": [search.explain, search.explainLong],
      "omitted: how many more there are": search.explainLong,
    },
  },
  {
    title: "MemoryResults",
    rows: {
      "object: list": search.answer,
      "query: as it was sent": search.answer,
      "data: results, best first": [search.answer, search.order],
    },
  },
  {
    title: "Context",
    rows: {
      "state: the current one": [context.answer, context.state],
      "memories: best first with a query, newest first without": context.query,
      "recent_turns: newest first": context.turns,
    },
  },
  {
    title: "Memory in a context",
    rows: {
      "fields: id, content, type, score, created_at": context.answer,
      "score: 0.0 without a query": context.query,
      "scope: the session's own, and its user's; never another user's": context.users,
    },
  },
  {
    title: "RecentTurn",
    rows: {
      "id: of the turn": context.answer,
      "input: as logged": context.answer,
      "output: as logged": context.answer,
      "created_at: when it was logged": context.answer,
    },
  },
  {
    title: "Turn",
    rows: {
      "object: turn, in lists too": [turns.defaults, turns.order],
      "id: turn_ and 12 characters": turns.defaults,
      "session_id: its session": turns.defaults,
      "turn_number: from 1 in order": [turns.numbers, models.counters],
      "created_at: when it was logged": turns.defaults,
      "input: as given": turns.kept,
      "output: as given": turns.kept,
      "reasoning: left out when none was given": [turns.kept, turns.defaults],
      "metadata: custom, {} by default": [turns.kept, turns.defaults],
      "state_before: a snapshot or null": [turns.kept, turns.defaults, turns.snapshots],
      "state_after: a snapshot or null": [turns.kept, turns.defaults, turns.snapshots],
    },
  },
  {
    title: "TurnInput",
    rows: {
      "type: text, audio, image or tool_call; required": [turns.types, turns.refused],
      "content: text; required": [turns.kept, turns.refused],
    },
  },
  {
    title: "TurnOutput",
    rows: {
      "type: text, audio, image, tool_result or error; required; tool_response is tool_result": [turns.types, turns.refused],
      "content: text; required": [turns.kept, turns.refused],
    },
  },
  {
    title: "Trace",
    rows: {
      "object: trace": traces.fields,
      "id: trace_ and 12 characters": traces.fields,
      "session_id: the session it concerns, null for keys, settings and webhooks": [
        traces.fields,
        ...adminTraceOf("api_key.created", "a new key"),
      ],
      "user_id: its user, left out when there is none": [traces.fields, traces.noUser],
      "action: what happened": traces.fields,
      "actor: first 8 characters of the key, or system": [traces.actor, expiry.trace],
      "timestamp: when it happened": traces.fields,
      "details: by action": traces.fields,
      "metadata: request_id and latency_ms": [traces.fields, traces.latency],
    },
  },
  {
    title: "ApiKey",
    rows: {
      "object: api_key": keys.defaults,
      "id: key_ and 12 characters": keys.defaults,
      "name: as given, null when none was": [keys.kept, keys.defaults],
      "prefix: its first 8 characters": keys.defaults,
      "key: crn_ and 24 characters, in the answer that made it and nowhere else": [keys.defaults, keys.kept, keys.replay, keys.secret],
      "scopes: read, write, admin": [keys.kept, keys.defaults],
      "tier: free, pro or enterprise": [keys.kept, keys.defaults],
      "rate_limit: by tier": keys.tiers,
      "created_at: when it was made": keys.defaults,
      "expires_at: when it ends, null for never": [keys.kept, keys.defaults],
      "last_used_at: when a request last came with it, null for never": [keys.lastUse, keys.lastUseMany],
      "last_used_at: known after a stop, and a minute late after a crash": [keys.lastUseKept, keys.lastUseWritten, keys.lastUseRefused],
      "last_used_at: writing it brings no revoked key back": keys.lastUseAlone,
      "rolled_from: the key in whose place it came": [keys.rolled, keys.rolledOnce],
      "rolled_to: the key that came in its place": [keys.rolled, keys.rolledOnce],
    },
  },
  {
    title: "Webhook",
    rows: {
      "object: webhook": webhooks.kept,
      "id: whk_ and 12 characters": webhooks.kept,
      "url: as given": [webhooks.kept, webhooks.patch],
      "events: as given, each once": webhooks.kept,
      "description: as given, null when none was": webhooks.kept,
      "enabled: as given, true unless said": webhooks.kept,
      "disabled_reason: why it was disabled by itself": [webhooks.gone, webhooks.failing],
      "failing_since: the first failure since the last success": webhooks.failing,
      "secret: in the answer that made it and nowhere else": [webhooks.kept, webhooks.rotation, webhooks.replay, webhooks.secret],
      "created_at: when it was made": webhooks.kept,
      "updated_at: when it was last changed": webhooks.patch,
    },
  },
  {
    title: "WebhookDelivery",
    rows: {
      "object: webhook_delivery": webhooks.test,
      "id: dlv_ and 12 characters": webhooks.test,
      "webhook_id: the webhook": webhooks.test,
      "event_id: the event, the same in every attempt": [webhooks.test, webhooks.retry],
      "event_type: the event's type": [webhooks.test, toldAs("a turn", "turn.added", "trace.created")],
      "session_id: of an event of a session": [webhooks.test, toldAs("a turn", "turn.added", "trace.created")],
      "status: pending, delivered, failed": [webhooks.schedule, webhooks.retry],
      "attempts: made in all": [webhooks.schedule, webhooks.retry],
      "created_at: when the event was taken up": webhooks.test,
      "last_attempt_at: null before the first": webhooks.test,
      "next_attempt_at: null when there is none, or an earlier one of the session comes first": [
        webhooks.test,
        webhooks.schedule,
        webhooks.blocked,
      ],
      "response_code: null without an answer": [webhooks.test, webhooks.hanging],
      "response_body: 2 KiB at most, harmless whatever was sent": [webhooks.test, webhooks.answers],
      "response_body: of a public address only": webhooks.shownOutside,
      "duration_ms: of the last attempt": webhooks.test,
      "error: why it does not count as delivered": [webhooks.test, webhooks.hanging, webhooks.redirect],
    },
  },
  {
    title: "Settings",
    rows: {
      "object: settings": settings.atFirst,
      "memories_on_expiry: with default and source": [settings.atFirst, settings.changed],
      "trace_retention_days: with default and source": [settings.atFirst, settings.changed],
      "max_body_bytes: with default and source": [settings.atFirst, settings.changed],
      "region: with default and source": [settings.atFirst, settings.region],
      "state_versions_kept: with default and source": settings.atFirst,
      "max_store_bytes: with default and source": [settings.atFirst, quotas.store],
      "webhooks: each with default and source": [settings.atFirst, settings.webhooks, PROCESS_SETTINGS],
      "embedding: each with default and source, the key never shown": [settings.atFirst, settings.environment],
    },
  },
  {
    title: "RateLimit",
    rows: {
      "per_minute: requests a minute": [keys.tiers, rateLimit.enterprise],
      "burst: requests at once": [keys.tiers, rateLimit.enterprise],
    },
  },
  {
    title: "Deleted",
    rows: {
      "object: what was deleted": [sessions.deleted, memories.deleted, keys.revoked],
      "id: its id": [sessions.deleted, memories.deleted, keys.revoked],
      "deleted: true": [sessions.deleted, memories.deleted, keys.revoked],
    },
  },
  {
    title: "POST /v1/sessions",
    rows: {
      "answer: 201 with the session": sessions.defaults,
      "agent_id: required, 1 to 256 characters": [sessions.refused, sessions.largest],
      "user_id: 1 to 256 characters": [sessions.refused, sessions.largest],
      "initial_state: becomes version 0, {} by default": [sessions.kept, sessions.defaults, versions.read],
      "metadata: {} by default": [sessions.kept, sessions.defaults],
      "ttl_seconds: 86,400 by default, 1 to 2,592,000": [sessions.defaults, sessions.largest, sessions.refused],
    },
  },
  {
    title: "GET /v1/sessions",
    rows: {
      "answer: 200 with a page, newest first": sessions.listed,
      "limit: 20, at most 100": [sessions.pages, sessions.refusedList],
      "starting_after: a session id": [sessions.pages, sessions.refusedList],
      "agent_id: filter": [sessions.listed, models.sessionPages],
      "user_id: filter": [sessions.listed, models.sessionPages],
      "created_after: sessions after this time": [lists.created, clock.filters],
      "created_before: sessions before this time": [lists.created, clock.filters],
      "a filter of another list: 400": lists.foreign,
    },
  },
  {
    title: "GET /v1/sessions/{session_id}",
    rows: { "answer: 200 with the session": sessions.kept, "none: 404 session_not_found": [sessions.notFound, sessions.deleted] },
  },
  {
    title: "PATCH /v1/sessions/{session_id}",
    rows: {
      "answer: 200 with the session": sessions.patchMetadata,
      "metadata: merged, a null removes the key": sessions.patchMetadata,
      "ttl_seconds: counted from now": [sessions.patchTtl, expiry.patch],
      "nothing changed: 200, and nothing is written": unchanged.session,
      "refusal: nothing changes": sessions.refusedPatch,
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "DELETE /v1/sessions/{session_id}",
    rows: {
      "answer: 200 with what was deleted": sessions.deleted,
      "reason: optional, kept in the trace": traceOf("session.deleted", "delete with a reason", "delete without a reason"),
      "states: removed": [sessions.cascade, sessions.manyStates],
      "turns: removed": [sessions.cascade, sessions.manyStates],
      "memories: removed, all at once": [sessions.cascade, sessions.largeCascade],
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "POST /v1/sessions/{session_id}/context",
    rows: {
      "answer: 200 with state, memories and turns": context.answer,
      "query: optional; finds memories by meaning": context.query,
      "memory_limit: 5 by default, at most 20": [context.limits, context.refused],
      "turn_limit: 10 by default, at most 50": [context.limits, context.refused],
      "explain: adds why": context.explain,
      "none of it: the body may be left out": [context.empty, http.noBody],
      "no trace: reading changes nothing": context.noTrace,
      "none: 404 session_not_found": context.noSession,
    },
  },
  {
    title: "POST /v1/sessions/{session_id}/state",
    rows: {
      "answer: 200 with the session": versions.update,
      "state: required, replaces the current one entirely": [versions.update, versions.refused],
      "reasoning: optional, kept in version and trace": [
        versions.listed,
        ...traceOf("state.updated", "state update with reasoning", "state update to the same state"),
      ],
      "expected_version: 409 version_conflict unless it is the current one": [versions.expected, versions.race],
      "version: a new one each time": [versions.update, models.versions],
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "POST /v1/sessions/{session_id}/rollback",
    rows: {
      "answer: 200 with the session": versions.rollback,
      "version: required; 0 is the initial state": [versions.rollbackTo, versions.refused],
      "current version: allowed, makes a new version": versions.rollbackTo,
      "negative version: counts back from the current one": [versions.rollbackTo, models.versions],
      "version that does not exist, or is kept no more: 404 version_not_found": [versions.rollbackNotFound, quotas.versions],
      "reason: optional, kept in version and trace": [
        versions.listed,
        ...traceOf("state.rolled_back", "rollback with a reason", "rollback without a reason"),
      ],
      "expected_version: 409 version_conflict unless it is the current one": versions.expected,
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "POST /v1/sessions/{session_id}/fork",
    rows: {
      "answer: 201 with a new session": sessions.fork,
      "version: the latest unless given": [sessions.forkVersion, sessions.fork],
      "version that does not exist, or is kept no more: 404 version_not_found": [sessions.forkNotFound, quotas.versions],
      "metadata: taken over, with forked_from and forked_version": sessions.fork,
      "agent, user and time to live: taken over, the latter in full": sessions.fork,
      "turns and memories: not copied": sessions.fork,
      "source: unchanged": [sessions.fork, sessions.forkVersion],
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "GET /v1/sessions/{session_id}/versions",
    rows: {
      "answer: 200 with a page, newest first": versions.listed,
      "limit: 20, at most 100": [versions.pages, versions.refusedList],
      "starting_after: a version number": [versions.pages, versions.refusedList],
      "a filter of another list: 400": lists.foreign,
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "GET /v1/sessions/{session_id}/versions/{version}",
    rows: {
      "answer: 200 with the version and its state": versions.read,
      "version that does not exist, or is kept no more: 404 version_not_found": [versions.notFound, quotas.versions],
      "none: 404 session_not_found": [sessions.notFound, versions.notFound],
    },
  },
  {
    title: "POST /v1/sessions/{session_id}/turns",
    rows: {
      "answer: 201 with the turn": turns.defaults,
      "input: required": turns.refused,
      "output: required": turns.refused,
      "reasoning: optional": [turns.kept, turns.refused],
      "metadata: optional": [turns.kept, turns.refused],
      "state_before: optional, never changes the state": [turns.kept, turns.refused, turns.snapshots],
      "state_after: optional, never changes the state": [turns.kept, turns.refused, turns.snapshots],
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "GET /v1/sessions/{session_id}/turns",
    rows: {
      "answer: 200 with a page": turns.order,
      "limit: 20, at most 100": [turns.pages, turns.refusedList],
      "starting_after: a turn id": [turns.pages, turns.goneCursor, turns.refusedList],
      "order: desc unless asc is given": [turns.order, turns.refusedList],
      "a filter of another list: 400": lists.foreign,
      "none: 404 session_not_found": sessions.notFound,
    },
  },
  {
    title: "GET /v1/sessions/{session_id}/turns/{turn_id}",
    rows: {
      "answer: 200 with the turn": turns.kept,
      "turn of another session: 404 turn_not_found": turns.notFound,
      "none: 404 turn_not_found or session_not_found": turns.notFound,
    },
  },
  {
    title: "POST /v1/memory",
    rows: {
      "answer: 201 with the memory": memories.defaults,
      "session_id: required, a live session": [memories.refused, memories.liveSession],
      "content: required, 1 to 10,000 characters": [memories.refused, memories.largest, memories.tooLarge],
      "type: general unless given": [memories.defaults, memories.types, memories.refused],
      "tags: optional, at most 64 of at most 128 characters": [memories.largest, memories.refused],
      "metadata: optional": [memories.kept, memories.refused],
      "embed: true unless given": [memories.notEmbedded, memories.refused],
    },
  },
  {
    title: "POST /v1/memory/search",
    rows: {
      "answer: 200 with results, best first": [search.answer, search.order],
      "query: required": search.refused,
      "session_id: filter; 404 session_not_found when there is no such live session": [search.filters, search.noSession],
      "user_id: filter": search.filters,
      "type: filter": search.filters,
      "tags: filter, any of them": search.filters,
      "limit: 10 by default, at most 50": [search.limit, search.refused],
      "threshold: 0.7 by default, 0.0 to 1.0": [search.threshold, search.refused],
      "threshold 0: nothing is left out": [search.all, search.nothing],
      "query of emoji and other signs: finds what holds them": search.signs,
      "explain: adds why": search.explain,
      "no filters: all memories": search.filters,
      "no trace: reading changes nothing": search.noTrace,
    },
  },
  {
    title: "GET /v1/memory",
    rows: {
      "created_after: memories after this time": [lists.created, clock.filters],
      "created_before: memories before this time": [lists.created, clock.filters],
      "a filter of another list: 400": lists.foreign,
      "answer: 200 with a page, newest first": memories.listed,
      "session_id: filter; 404 session_not_found when there is no such live session": [memories.listed, memories.listOfNoSession],
      "user_id: filter": [memories.listed, models.memoryPages],
      "type: filter": [memories.listed, models.memoryPages],
      "tags: filter, comma-separated, any of them": [memories.listed, models.memoryPages],
      "tags: repeated, each is one tag, which may have commas": memories.repeatedTags,
      "limit: 20, at most 100": [memories.pages, memories.refusedList],
      "starting_after: a memory id": [memories.pages, memories.refusedList],
    },
  },
  {
    title: "GET /v1/memory/{memory_id}",
    rows: { "answer: 200 with the memory": memories.kept, "none: 404 memory_not_found": memories.notFound },
  },
  {
    title: "PATCH /v1/memory/{memory_id}",
    rows: {
      "answer: 200 with the memory": memories.newVector,
      "content: a new one gets a new vector and embedding_id": [memories.newVector, memories.sameVector, memories.tooLarge],
      "content of one without a vector: stays without": memories.notEmbedded,
      "type: replaced": [memories.sameVector, memories.refusedChange],
      "tags: replaced": [memories.sameVector, memories.refusedChange],
      "nothing changed: 200, and nothing is written": unchanged.memory,
      "metadata: merged, a null removes the key": [memories.merged, memories.mergedTooLarge],
      "none: 404 memory_not_found": memories.notFound,
    },
  },
  {
    title: "DELETE /v1/memory/{memory_id}",
    rows: {
      "answer: 200 with what was deleted": memories.deleted,
      "reason: optional, kept in the trace": traceOf("memory.deleted", "memory deleted with a reason", "memory deleted without a reason"),
      "vector: removed with it": memories.deleted,
      "none: 404 memory_not_found": memories.notFound,
    },
  },
  {
    title: "GET /v1/traces",
    rows: {
      "answer: 200 with a page, newest first": traces.listed,
      "limit: 20, at most 100": [traces.pages, traces.refusedList],
      "starting_after: a trace id": [traces.pages, traces.refusedList],
      "session_id: filter, whether or not the session is still there": [traces.listed, traces.outlive],
      "user_id: filter": [traces.listed, models.tracePages],
      "action: filter": [traces.listed, models.tracePages, traces.refusedList],
      "created_after: strictly after": [traces.times, models.tracePages, traces.refusedList],
      "created_before: strictly before": [traces.times, models.tracePages, traces.refusedList],
      "a filter of another list: 400": lists.foreign,
      "traces of keys, settings and webhooks: for the scope admin only": adminTraces.hidden,
    },
  },
  {
    title: "GET /v1/traces/{trace_id}",
    rows: {
      "answer: 200 with the trace": traces.fields,
      "none: 404 trace_not_found": traces.notFound,
      "of keys, settings and webhooks: 404 without the scope admin": adminTraces.hidden,
      "expired: 404 trace_not_found": [traces.free, traces.pro, traces.enterprise],
    },
  },
  {
    title: "POST /v1/api_keys",
    rows: {
      "answer: 201 with the key, in full this once": [keys.defaults, keys.kept],
      "name: optional, at most 256 characters": [keys.kept, keys.refused],
      "scopes: read and write unless given; an unknown one is 400": [keys.defaults, keys.refused],
      "tier: free unless given": [keys.defaults, keys.tiers, keys.refused],
      "rate_limit: for enterprise keys": [keys.kept, keys.tiers, keys.refused],
      "expires_at: optional": [keys.kept, keys.ends, keys.refused],
      "replay: with the secret": keys.replay,
    },
  },
  {
    title: "GET /v1/api_keys",
    rows: {
      "answer: 200 with a page, newest first, without secrets": [keys.listed, keys.kept],
      "limit: 20, at most 100": keys.listed,
      "starting_after: a key id": keys.listed,
      "a filter of another list: 400": lists.foreign,
    },
  },
  {
    title: "GET /v1/api_keys/{key_id}",
    rows: { "answer: 200 with the key, without its secret": keys.kept, "none: 404 resource_not_found": keys.notFound },
  },
  {
    title: "POST /v1/api_keys/{key_id}/roll",
    rows: {
      "answer: 201 with a new key like it, in full this once": keys.rolled,
      "overlap_seconds: 0 to 604800, 86400 unless given": [keys.overlapDefault, keys.overlapSaid, keys.overlapMost, keys.refusedRoll],
      "overlap_seconds: 0 ends it at once": keys.noOverlap,
      "overlap_seconds: never beyond its own end": keys.rolledEnd,
      "expires_at: as the key before unless given": [keys.rolledEnd, keys.refusedRoll],
      "scopes: no more than the caller has": keys.rolledScopes,
      "once: 400 for one that was rolled": keys.rolledOnce,
      "force: lets the last admin key end": keys.lastAdmin,
      "replay: with the secret": keys.rolledAgain,
      "none, revoked or ended: 404 resource_not_found": keys.rolledGone,
    },
  },
  {
    title: "DELETE /v1/api_keys/{key_id}",
    rows: {
      "answer: 200 with what was deleted": keys.revoked,
      "revocation: at once": keys.revoked,
      "reason: optional, kept in the trace": adminTraceOf("api_key.revoked", "a revoked key"),
      "force: without it the last admin key that works is 400": keys.lastAdmin,
      "none: 404 resource_not_found": keys.notFound,
    },
  },
  {
    title: "GET /v1/settings",
    rows: { "answer: 200 with every setting, its default and its source": settings.atFirst, "scope: admin": settings.scope },
  },
  {
    title: "PATCH /v1/settings",
    rows: {
      "answer: 200 with every setting as it is now": [settings.changed, settings.together],
      "memories_on_expiry: keep or delete, from then on": [settings.memories, settings.refused],
      "trace_retention_days: 1 to 2557, for traces from then on": [settings.traces, settings.refused],
      "max_body_bytes: 1 KiB to 64 MiB, at once": [settings.body, settings.refused],
      "state_versions_kept: the newest of each session and version 0": [quotas.versions, quotas.lowered, settings.refused],
      "max_store_bytes: 503 for what makes the store larger": [quotas.store, quotas.replayed, settings.refused],
      "nothing changed: 200, and no trace": settings.unchanged,
      "region: at most 64 characters, in /health at once": [settings.region, settings.noRegion, settings.refused],
      "webhooks: in force from the next attempt on": [
        webhooks.setSchedule,
        webhooks.setTimeout,
        webhooks.setPrivate,
        settings.warned,
        settings.refused,
        PROCESS_SETTINGS,
      ],
      "embedding: in force once it was tried": [settings.changed, settings.environment, settings.refused],
      "null: back to the environment's or the default, like an empty text": [settings.nulls, settings.environment, settings.webhooks],
      "unknown: 400 with its name": settings.unknown,
      "replay: changes nothing": settings.replay,
      "whole: all of a change or nothing": [settings.refused, settings.unwritten],
      "log: who and what, without the values": settings.logged,
      "scope: admin": settings.scope,
    },
  },
  {
    title: "Metrics",
    rows: {
      "requests: by route and status, with latency histograms": operating.requests,
      "store: records by kind, size": [operating.records, operating.index],
      "index: vectors and lag": operating.index,
      "webhooks: outbox depth, pending deliveries, outcomes": operating.deliveries,
      "expiry: lag": operating.records,
      "types: gauges and counters": operating.types,
      "scope: admin, or none where CAIRN_METRICS is open": operating.scope,
    },
  },
  {
    title: "Network",
    rows: {
      "default settings: nothing leaves the machine": [
        "process/network.test.ts › with the default settings nothing leaves the machine: not at the start, in a conversation, in a search, in a command, nor at the stop",
        "process/network.test.ts › what an operator asks for is seen leaving: a webhook by name, and an embedding provider",
      ],
    },
  },
  {
    title: "Durability",
    rows: {
      "answer of success: after the flush, for every kind of write": powerCut.order,
      "power cut: everything acknowledged is there, whole and once": powerCut.survives,
      "relaxed: everything answered a second before is there": durability.relaxed,
    },
  },
  {
    title: "Disk",
    rows: {
      "full: 503 for writes, reads go on, works again by itself": [disk.refuses, disk.full],
      "read-only: 503 with the reason, reads go on": disk.readOnly,
      "map: 503 with the reason where the store may not grow": disk.cannotGrow,
      "start: succeeds on a full disk, with another provider too": [disk.full, disk.otherProvider],
      "meta page: 503 for all, then exit code 74": failingDisk.panic,
      "relaxed: commands and the server end, a strict start serves reads": failingDisk.relaxed,
      "killed readers: are let go of":
        "process/readers.test.ts › what a killed export was reading is let go of while the server runs, and its room on the disk is used again",
    },
  },
  {
    title: "POST /v1/webhooks",
    rows: {
      "answer: 201 with the webhook, and its secret this once": webhooks.kept,
      "url: required": [webhooks.refused, webhooks.targetsHere],
      "events: required, one or more of the nine": webhooks.refused,
      "description: optional, at most 256 characters": [webhooks.kept, webhooks.refused],
      "enabled: true unless said": [webhooks.kept, webhooks.unwanted],
      "secret: made unless given": [webhooks.kept, webhooks.refused],
      "replay: with the secret": webhooks.replay,
      "scope: admin": webhooks.scopes,
    },
  },
  {
    title: "GET /v1/webhooks",
    rows: {
      "answer: 200 with a page, newest first, without secrets": [webhooks.listed, webhooks.kept],
      "limit: 20, at most 100": webhooks.listed,
      "starting_after: a webhook id": webhooks.listed,
      "a filter of another list: 400": lists.foreign,
    },
  },
  {
    title: "GET /v1/webhooks/{webhook_id}",
    rows: { "answer: 200 with the webhook, without its secret": webhooks.kept, "none: 404 resource_not_found": webhooks.notFound },
  },
  {
    title: "PATCH /v1/webhooks/{webhook_id}",
    rows: {
      "nothing changed: 200, and nothing is written": unchanged.webhook,
      "answer: 200 with the webhook": webhooks.patch,
      "url: checked as at creation": [webhooks.patch, webhooks.targetsHere],
      "events: replaced": webhooks.patch,
      "description: replaced": webhooks.patch,
      "enabled: begins anew": [webhooks.unwanted, webhooks.gone],
      "none: 404 resource_not_found": webhooks.notFound,
    },
  },
  {
    title: "DELETE /v1/webhooks/{webhook_id}",
    rows: {
      "answer: 200 with what was deleted": webhooks.deleted,
      "reason: optional, kept in the trace": adminTraceOf("webhook.deleted", "a deleted webhook"),
      "none: 404 resource_not_found": webhooks.notFound,
    },
  },
  {
    title: "POST /v1/webhooks/{webhook_id}/rotate_secret",
    rows: {
      "answer: 200 with the webhook and its new secret": webhooks.rotation,
      "secret: made unless given": [webhooks.rotation, webhooks.ownSecret],
      "overlap: both are valid for 24 hours": webhooks.rotation,
      "replay: with the secret": webhooks.replay,
    },
  },
  {
    title: "POST /v1/webhooks/{webhook_id}/test",
    rows: { "answer: 201 with the delivery": webhooks.test, "disabled: 400": webhooks.disabled },
  },
  {
    title: "GET /v1/webhooks/{webhook_id}/deliveries",
    rows: {
      "answer: 200 with a page, newest first": [webhooks.listed, webhooks.test],
      "limit: 20, at most 100": webhooks.listed,
      "starting_after: a delivery id": webhooks.listed,
      "a filter of another list: 400": lists.foreign,
    },
  },
  {
    title: "POST /v1/webhooks/{webhook_id}/deliveries/{delivery_id}/retry",
    rows: {
      "answer: 200 with the delivery": webhooks.retry,
      "disabled: 400": webhooks.disabled,
      "none: 404 resource_not_found": webhooks.notFound,
    },
  },
  {
    title: "Health",
    rows: {
      "/health: needs no key": authentication.open,
      "/health/live: needs no key": authentication.open,
      "/health/ready: needs no key": authentication.open,
      "durability: strict, or relaxed when that was asked for": [durability.relaxed, durability.back],
      "/health, /health/ready: 503 degraded with the reason while reads or changes fail": [failingDisk.panic, failingDisk.readiness],
      "/health, /health/ready: 503 degraded while the vector index has failed": http.indexFailed,
      "/health/live: 200 as long as the process answers": [failingDisk.readiness, http.indexFailed],
      "cost: writes nothing, and tries a disk that fails every few seconds": failingDisk.probes,
      "a disk that hangs: not ready": failingDisk.slow,
    },
  },
  {
    title: "Life of a session",
    rows: {
      "creation: active at version 0, with trace and event": [sessions.defaults, ...traceOf("session.created", "create"), CREATED[0]],
      "state update: new version, trace and event": [
        versions.update,
        ...traceOf("state.updated", "state update with reasoning"),
        eventsOf("state update", "session.updated", "trace.created"),
      ],
      "rollback: new version with the restored state, trace and events": [
        versions.rollback,
        ...traceOf("state.rolled_back", "rollback with a reason"),
        ROLLED_BACK,
      ],
      "fork: the source stays, the new one has the trace": [sessions.fork, ...traceOf("session.forked", "fork"), CREATED[1]],
      "expiry: 404 from the moment on, trace and event": [
        expiry.onTime,
        expiry.listed,
        expiry.trace,
        expiry.once,
        eventsOf("expiry", "session.expired", "trace.created"),
      ],
      "expiry: states and turns go, memories stay": expiry.knowledge,
      "expiry: memories go too where memories_on_expiry says so": expiry.setting,
      "activity: does not extend the time to live, PATCH does": [expiry.noActivity, expiry.patch],
      "deletion: everything goes, trace and event": [
        sessions.cascade,
        ...traceOf("session.deleted", "delete with a reason"),
        eventsOf("delete session", "session.deleted", "trace.created"),
      ],
      "traces: outlive it": traces.outlive,
    },
  },
  {
    title: "Trace actions",
    rows: {
      "session.created: agent_id, user_id, initial_state": traceOf("session.created", "create"),
      "session.updated: metadata_diff, ttl_seconds": traceOf("session.updated", "PATCH of metadata", "PATCH of the time to live"),
      "session.deleted: session_id, reason, turn_count, memory_count": traceOf(
        "session.deleted",
        "delete with a reason",
        "delete without a reason",
      ),
      "session.forked: source_session_id, source_session, fork_version": traceOf("session.forked", "fork"),
      "session.expired: ttl_seconds, last_activity": [...traceOf("session.expired", "expiry"), expiry.trace],
      "state.updated: reasoning, state_diff (added, removed, modified), version": [
        ...traceOf("state.updated", "state update with reasoning", "state update to the same state"),
        models.diff,
      ],
      "state.rolled_back: from_version, to_version, reason": traceOf(
        "state.rolled_back",
        "rollback with a reason",
        "rollback without a reason",
      ),
      "turn.added: turn_number, input_type, output_type, reasoning": traceOf("turn.added", "turn with reasoning", "turn without reasoning"),
      "memory.created: content_preview, type, tags, embedded": traceOf("memory.created", "memory with a vector", "memory without a vector"),
      "memory.updated: content_changed, tags_changed": traceOf("memory.updated", "memory with a new content", "memory with new tags"),
      "memory.deleted: content_preview, reason": traceOf(
        "memory.deleted",
        "memory deleted with a reason",
        "memory deleted without a reason",
      ),
      "api_key.created: key_id, prefix, name, scopes, tier, rate_limit, expires_at": [
        ...adminTraceOf("api_key.created", "a new key"),
        adminTraces.commands,
      ],
      "api_key.rolled: the key, rolled_to, ends_at": adminTraceOf("api_key.rolled", "a rolled key"),
      "api_key.revoked: the key, reason": adminTraceOf("api_key.revoked", "a revoked key"),
      "settings.updated: changes by name, from and to": adminTraceOf("settings.updated", "a change of settings"),
      "webhook.created: webhook_id, url, events, description, enabled": adminTraceOf("webhook.created", "a new webhook"),
      "webhook.updated: webhook_id, changes": [
        ...adminTraceOf("webhook.updated", "a changed webhook", "a webhook whose path alone has changed"),
        adminTraces.atOnce,
      ],
      "webhook.disabled: webhook_id, url, reason": [...adminTraceOf("webhook.disabled", "a disabled webhook"), adminTraces.bySystem],
      "webhook.secret_rotated: webhook_id, url, previous_valid_until": adminTraceOf("webhook.secret_rotated", "a rotated secret"),
      "webhook.deleted: webhook_id, url, reason": adminTraceOf("webhook.deleted", "a deleted webhook"),
    },
  },
  {
    title: "Traces",
    rows: {
      "every change: leaves one; reads, refusals and replays none": [traces.none, adminTraces.none, adminTraces.together],
      "keys, settings, webhooks: for the scope admin only": adminTraces.hidden,
      "secrets: never in a trace": adminTraces.noSecret,
      "writing: nobody else writes them": traces.readOnly,
      "retention of free keys: 7 days": traces.free,
      "retention of pro keys: 90 days": traces.pro,
      "retention of enterprise keys: 365 days, or as set": [traces.enterprise, traces.retentionSetting, adminTraces.retention],
    },
  },
  {
    title: "Events",
    rows: {
      "session.created: a session was made or forked": CREATED,
      "session.updated: state, rollback or metadata": [
        eventsOf("state update", "session.updated", "trace.created"),
        ROLLED_BACK,
        eventsOf("PATCH of a session", "session.updated", "trace.created"),
      ],
      "session.deleted: a session was deleted": eventsOf("delete session", "session.deleted", "trace.created"),
      "session.expired: a session's time has come": eventsOf("expiry", "session.expired", "trace.created"),
      "turn.added: a turn was logged": eventsOf("turn", "turn.added", "trace.created"),
      "memory.created: a memory was added": eventsOf("memory added", "memory.created", "trace.created"),
      "trace.created: every trace": [events.memoryChanges, ...CREATED],
      "trace.rollback: every rollback": ROLLED_BACK,
      "trace.error: a turn whose output is an error": eventsOf(
        "turn whose output is an error",
        "turn.added",
        "trace.created",
        "trace.error",
      ),
      "data: the affected record as it was": events.asItWas,
      "transaction: that of the change": events.together,
      "order: that of the changes": events.order,
      "nothing else: leaves one": events.none,
      "unwanted: do not pile up": [events.unwanted, webhooks.unwanted],
      "delivery: to every webhook that wants it, from its creation on": [webhooks.wanted, webhooks.woken, adminTraces.events],
      "payload: id, type, created_at, data": toldAs("a turn", "turn.added", "trace.created"),
      "signatures: plain and Standard Webhooks": [signatures.plain, signatures.example, signatures.verified],
      "at least once: across a kill at any moment, with the same id": [
        webhooks.restarts,
        "process/webhooks.test.ts › what was not delivered before a kill -9 is delivered after it, with the same id, by the operator's schedule",
      ],
      "order of delivery: that of the changes, per session as far as retries allow": [webhooks.order, webhooks.held, webhooks.keepsOrder],
      "retries: after 5 s, 5 min, 30 min, 2 h, 5 h, 10 h, 10 h, or as the operator says": [webhooks.schedule, webhooks.ownSchedule],
      "Retry-After: is honoured": webhooks.retryAfter,
      "time limit: 15 s, and nobody else waits": [webhooks.hanging, webhooks.blocked],
      "sessions of a webhook: up to 8 at once": webhooks.atOnce,
      "410: disables at once": webhooks.gone,
      "redirects: are failures": webhooks.redirect,
      "5 days of failures: disable, with the reason": webhooks.failing,
      "stop: ends attempts under way": webhooks.stopped,
      "targets: no private ones, checked when set and before every attempt": [
        webhooks.targetsHere,
        webhooks.targetsOutside,
        webhooks.targetsAnywhere,
        webhooks.moved,
        "unit/webhooks/delivery.test.ts › the address that was checked is the one that is dialled: the name is looked up once for each attempt",
      ],
    },
  },
  {
    title: "Idempotency",
    rows: {
      "replay: the same answer, no duplicate, marked as such": [idempotency.replay, idempotency.everyChange, idempotency.onPatch],
      "kept: for 24 hours, across a restart": [idempotency.hours, idempotency.restart],
      "other request under the same key: 400": idempotency.other,
      "at once: one change": idempotency.copies,
      "no answer: sent again, the answer of the change that was made": sockets.halfClosed,
      "only 2xx: is kept": idempotency.failures,
      "reads: are run again": [idempotency.reads, idempotency.notOnOthers],
      "no change: is kept too": idempotency.unchanged,
      "secrets: are given again, and kept encrypted": [
        keptSecret("create an API key"),
        keptSecret("roll an API key"),
        keptSecret("create a webhook"),
        keptSecret("rotate a secret"),
      ],
      "scope: the API key": idempotency.perKey,
      "methods: POST and PATCH": [idempotency.everyChange, idempotency.onPatch, idempotency.notOnOthers],
      "shape: 1 to 255 printable ASCII characters": [idempotency.shape, idempotency.otherShape],
      "trace: a replay leaves none": traces.none,
    },
  },
  {
    title: "Keys and scopes",
    rows: {
      "X-API-Key: carries the key": authentication.header,
      "Authorization: Bearer carries it too": authentication.bearer,
      "query: never carries it": authentication.inQuery,
      "missing or invalid: 401 authentication_failed, whatever was asked": [
        authentication.missing,
        authentication.invalid,
        authentication.nothingToldApart,
      ],
      "read: all GET, search and context": [keys.readScope, authentication.scopes],
      "write: all other record calls": [keys.writeScope, authentication.scopes],
      "admin: keys and the rest; implies the others": [keys.adminScope, authentication.scopes],
      "lacking scope: 403 permission_denied, nothing changes": keys.refusedRequest,
      "records: the same for all keys": keys.sameRecords,
      "first key: admin, enterprise": keys.listed,
      "secret: only a hash is stored": keys.secret,
      "revoked: refused at once": keys.revoked,
      "revoked: never registered again from CAIRN_API_KEY": keys.deletedStays,
      "ended: refused from its time on": keys.ends,
      "actor: the key's first 8 characters": traces.actor,
    },
  },
  {
    title: "Error",
    rows: {
      "code: a machine reads it": errorShape("400 invalid_request"),
      "message: a person reads it": errorShape("400 invalid_request"),
      "type: by status": [errorShape("400 invalid_request"), errorShape("401 authentication_failed"), errorShape("500 internal_error")],
      "param: the field at fault": [badInput.bodies, errorShape("400 invalid_request")],
      "retry_after: seconds to wait, on 429": rateLimit.refusal,
      "retry_after: on 503 where other bodies or answers leave no room": [sockets.bodyMemory, sockets.answerMemory],
      "request_id: that of the answer's header": [errorShape("400 invalid_request"), http.requestId],
    },
  },
  {
    title: "Error codes",
    rows: {
      "invalid_request: 400": errorShape("400 invalid_request"),
      "method_not_allowed: 405 invalid_request, with Allow": [errorShape("405 invalid_request"), http.methods],
      "authentication_failed: 401": errorShape("401 authentication_failed"),
      "permission_denied: 403": errorShape("403 permission_denied"),
      "resource_not_found: 404 for a path that is none": errorShape("404 resource_not_found"),
      "session_not_found: 404": errorShape("404 session_not_found"),
      "memory_not_found: 404": errorShape("404 memory_not_found"),
      "turn_not_found: 404": errorShape("404 turn_not_found"),
      "trace_not_found: 404": errorShape("404 trace_not_found"),
      "version_not_found: 404": errorShape("404 version_not_found"),
      "version_conflict: 409": [errorShape("409 version_conflict"), versions.expected],
      "request_timeout: 408": [errorShape("408 request_timeout"), sockets.lateBody],
      "payload_too_large: 413": errorShape("413 payload_too_large"),
      "content_too_large: 413": [errorShape("413 content_too_large"), memories.tooLarge],
      "rate_limit_exceeded: 429": rateLimit.refusal,
      "internal_error: 500": [errorShape("500 internal_error"), http.ourFault],
      "service_unavailable: 503": errorShape("503 service_unavailable"),
    },
  },
  {
    title: "Headers",
    rows: {
      "X-RateLimit-Limit: requests a minute": [rateLimit.headers, rateLimit.everyAnswer],
      "X-RateLimit-Remaining: whole requests left": [rateLimit.headers, rateLimit.everyAnswer],
      "X-RateLimit-Reset: Unix second at which all are back": [rateLimit.headers, rateLimit.everyAnswer],
      "Retry-After: with 429": rateLimit.refusal,
      "Retry-After: with 503 where other bodies or answers leave no room": [sockets.bodyMemory, sockets.answerMemory],
      "X-Request-Id: the client's own, or a new one": http.requestId,
      "X-Content-Type-Options: nosniff": http.json,
      "Cache-Control: no-store": http.noStore,
      "plain HTTP: its answers carry no-store, nosniff and X-Request-Id too":
        "process/tls.test.ts › with a certificate it speaks HTTPS alone, and sends plain HTTP there from a port of its own",
      "Vary: Origin, where other origins may call": operating.cors,
      "Idempotency-Replayed: on a replay": idempotency.replay,
      "Allow: with 405": http.methods,
      "Host: a name of the server's": http.host,
    },
  },
  {
    title: "Rate limits",
    rows: {
      "free: 100 a minute, 200 at once": rateLimit.free,
      "pro: 1,000 a minute, 2,000 at once": rateLimit.pro,
      "enterprise: 60,000 a minute, 120,000 at once, or its own": rateLimit.enterprise,
      "owner: each key for itself": rateLimit.perKey,
      "without a key: per address": [rateLimit.perKey, sockets.perAddress],
    },
  },
  {
    title: "Limits",
    rows: {
      "ttlSecondsDefault: 24 hours": sessions.defaults,
      "adminKeysSearchedMax: 10,000 keys, half of them at each end of the list": keys.lastAdmin,
      "ttlSecondsMax: 30 days": [sessions.largest, sessions.refused],
      "bodyBytesMax: 1 MiB, refused before it is read whole": [sockets.bodyLimit, sockets.chunkedLimit, sockets.wholeLimit],
      "arrivingBytesMax: 64 MiB, half of it for one key": [sockets.bodyMemory, bodies.memory, memory.tinyChunks],
      "bodySecondsMax: 30": sockets.lateBody,
      "bodyBytesPerSecondMin: 32 KiB": sockets.lateBody,
      "jsonDepthMax: 64 levels": badInput.depth,
      "metadataBytesMax: 64 KiB": badInput.metadataBytes,
      "agentIdLengthMax: 256": [sessions.largest, sessions.refused],
      "userIdLengthMax: 256": [sessions.largest, sessions.refused],
      "memoryContentLengthMax: 10,000": [memories.largest, memories.tooLarge],
      "memoryTypeLengthMax: 64": [memories.largest, memories.refused],
      "tagLengthMax: 128": [memories.largest, memories.refused],
      "tagsMax: 64": [memories.largest, memories.refused],
      "reasonLengthMax: 10,000": versions.refused,
      "queryLengthMax: 10,000": badInput.bodies,
      "keyNameLengthMax: 256": keys.refused,
      "keyOverlapSecondsDefault: 86400": keys.overlapDefault,
      "keyOverlapSecondsMax: 604800": [keys.overlapMost, keys.refusedRoll],
      "idempotencyKeyLengthMax: 255": [idempotency.shape, idempotency.otherShape],
      "listDefault: 20": sessions.pages,
      "listMax: 100": [sessions.pages, badInput.limit],
      "pageBytesMax: 8 MiB": turns.large,
      "unsentBytesMax: 128 MiB, half of it for one key": [sockets.answerMemory, memory.unread],
      "searchesAtOnceMax: 16": search.atOnce,
      "searchesOfKeyAtOnceMax: 8": search.atOnce,
      "stateVersionsKeptDefault: 1000": settings.atFirst,
      "stateVersionsKeptMin: 2": settings.refused,
      "stateVersionsKeptMax: 1,000,000,000": settings.refused,
      "maxStoreBytesMin: 1 MiB": settings.refused,
      "maxStoreBytesMax: 1 PiB": settings.refused,
      "explainedWordsMax: 50": search.explainLong,
      "explainedWordLengthMax: 64": search.explainLong,
      "searchLooksMax: 1,000,000":
        "unit/vectors/indexer.test.ts › a search that would look at too much finds the newest that pass and those among the nearest",
      "listLooksMax: 50,000": "unit/storage/page.test.ts › a search for records that finds none ends after the looks of one page",
      "contextMemoriesDefault: 5": context.limits,
      "contextMemoriesMax: 20": [context.limits, badInput.bodies],
      "contextTurnsDefault: 10": context.limits,
      "contextTurnsMax: 50": [context.limits, badInput.bodies],
      "searchDefault: 10": search.limit,
      "searchMax: 50": [search.limit, badInput.bodies],
      "searchThresholdDefault: 0.7": search.threshold,
      "idempotencyHours: 24": idempotency.hours,
      "webhooksMax: 100": webhooks.most,
      "webhookDescriptionLengthMax: 256": webhooks.refused,
      "webhookSecretLengthMin: 16": webhooks.refused,
      "webhookSecretLengthMax: 255": webhooks.refused,
      "webhookSecretOverlapHours: 24": webhooks.rotation,
      "webhookSessionsAtOnceMax: 8": webhooks.atOnce,
      "deliveryDays: 7": webhooks.retention,
      "contentPreviewLength: 100 characters": traceOf("memory.created", "memory with a vector"),
    },
  },
];
