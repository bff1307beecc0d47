/**
 * Every limit of the API is held by a test that is named here, as it is written in its file.
 *
 * What else is promised stands in the names of the tests, and the form of answers in the OpenAPI document, with which every
 * answer of every test is compared (`support/documented.ts`).
 *
 * @module
 */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LIMITS } from "../src/lib/limits.ts";

const BODY_LIMITS = [
  "ttlSecondsMax",
  "jsonDepthMax",
  "metadataBytesMax",
  "agentIdLengthMax",
  "userIdLengthMax",
  "externalIdLengthMax",
  "memoryTypeLengthMax",
  "memoryTypesMax",
  "memoryTtlSecondsMax",
  "tagLengthMax",
  "tagsMax",
  "reasonLengthMax",
  "queryLengthMax",
  "keyNameLengthMax",
  "keyOverlapSecondsMax",
  "contextMemoriesMax",
  "contextTokensMax",
  "contextTurnsMax",
  "searchMax",
  "halfLifeDaysMax",
  "retrievalNoteLengthMax",
  "stateVersionsKeptMin",
  "memoryVersionsKeptMax",
  "similarMax",
  "stateVersionsKeptMax",
  "maxStoreBytesMin",
  "maxStoreBytesMax",
  "turnsAtOnceMax",
  "stepMemoriesMax",
  "documentOperationsMax",
  "documentFieldsMax",
  "namespaceDepthMax",
  "documentListMax",
  "webhookDescriptionLengthMax",
  "webhookSecretLengthMin",
  "webhookSecretLengthMax",
] as const;

const HELD_BY: Record<string, Record<string, readonly (keyof typeof LIMITS)[]>> = {
  "refusals.test.ts": {
    "every field of a body has these limits and defaults": [
      "ttlSecondsDefault",
      "keyOverlapSecondsDefault",
      "contextMemoriesDefault",
      "contextTurnsDefault",
      "searchDefault",
      "searchThresholdDefault",
    ],
    "a body that the document does not allow is refused by the name of its field, and nothing changes": BODY_LIMITS,
    "the smallest and the largest values that the document allows are taken": BODY_LIMITS,
    "a memory's content of 10,000 characters is taken, and one more is too large": ["memoryContentLengthMax"],
    "a parameter of a query that the document does not allow is refused by its name": ["listMax", "reasonLengthMax"],
  },
  "backup-schedule.test.ts": { "a hundred backups of the schedule may be kept, and no more": ["scheduledBackupsMax"] },
  "backups.test.ts": {
    "at most twenty backups are kept, in pages, the newest first": ["backupsMax"],
    "a ticket downloads once, what it is for, within a minute and while its key is valid": ["ticketSeconds"],
    "of many tickets the newest thousand are good": ["ticketsMax"],
  },
  "memory-validity.test.ts": {
    "chains of memories are past but for the last, one moves with its superseding one, and a link that cannot be is refused whole": [
      "supersededMax",
    ],
  },
  "memory-history.test.ts": {
    "as many contents are kept as memory_versions_kept says, the oldest go, and all go with their memory": ["memoryVersionsKeptDefault"],
    "similar lists the owner's nearest current memories as they were before the new one, and needs the scope read": ["similarDefault"],
  },
  "memory-pins.test.ts": {
    "an owner has 20 pinned memories at most: another one is refused, and nothing is changed": ["pinnedMemoriesMax"],
  },
  "memory-forget.test.ts": {
    "a dry run is the default: it counts, shows ten, and deletes nothing": ["forgottenShown"],
    "an empty filter, a wrong token and a token of a dry run that counted more than the limit are refused by their names": ["forgottenMax"],
    "without a limit a request takes a hundred": ["forgottenDefault"],
  },
  "memory-batch.test.ts": { "the one that is wrong is named by its place, and nothing is stored": ["memoryBatchMax"] },
  "fork-memories.test.ts": {
    "a fork shows the memories of at most 32 sessions before it, of which those without any do not count": ["forkMemorySessionsMax"],
  },
  "branches.test.ts": { "a fork can begin with the newest turns alone, or without any": ["forkTurnsMax"] },
  "bad-input.test.ts": { "metadata is at most 64 KiB of JSON, counted in bytes, also after merging": ["metadataBytesMax"] },
  "context.test.ts": {
    "five memories and ten turns come unless others are asked for: up to 20 and 50, and as few as none": [
      "contextMemoriesDefault",
      "contextTurnsDefault",
    ],
  },
  "context-budget.test.ts": {
    "no context has more tokens than it may, by any tokenizer, and each has something of each kind that exists": [
      "contextShortenedTokensMin",
    ],
  },
  "document-search.test.ts": {
    "what is no path, too many of them, or leads to too long a text is refused by its name, and nothing is changed": [
      "documentTextLengthMax",
      "documentIndexPathsMax",
      "documentIndexPathLengthMax",
    ],
    "a search gives ten documents unless up to 200 are asked for, and a request has ten searches at most": [
      "documentSearchesMax",
      "documentSearchDepthMax",
    ],
  },
  "mcp.test.ts": {
    "a message with more members than any client sends is refused before it is looked at, and a state can be as wide as ever": [
      "mcpMembersMax",
    ],
  },
  "memory-filters.test.ts": {
    "a search compares 10,000 memories with its filter and no more, and then says that its answer is partial; metadata that equals a value is found among more, whatever else there is":
      ["memoryRowsMax"],
  },
  "documents.test.ts": {
    "an operation without a field that it needs, or with one that it does not take, is refused by its name": ["documentNameBytesMax"],
    "a batch deletes by filters and copies 200 documents, looks at 1,000, and says where the next goes on": [
      "documentBulkRowsMax",
      "documentBulkChangesMax",
    ],
    "a query looks at 10,000 documents and no more, says where to go on, and lets other requests through": ["documentRowsMax"],
    "a filter counts by what it compares: a large one looks at fewer documents, and lets other requests through": ["documentProbesMax"],
    "of queries that hold much each key's few are under way at once, and all are answered in full": [
      "documentQueriesAtOnceMax",
      "documentQueriesOfKeyAtOnceMax",
    ],
    "a filter compares members by their paths": ["filterPathsMax", "filterValuesMax", "filterDepthMax", "filterPartLengthMax"],
    "a list has a hundred documents unless a limit of up to 1,000 is asked for": ["documentListDefault", "documentListMax"],
  },
  "events.test.ts": {
    "a comment comes every 20 s": ["eventCommentSeconds"],
    "a key has at most ten streams, and one that ends makes room": ["eventStreamsOfKeyMax"],
    "of a hundred streams each key has a fair share: who has fewer takes the newest place of who has most, which can go on later": [
      "eventStreamsMax",
    ],
  },
  "idempotency.test.ts": {
    "an answer is kept for 24 hours to the millisecond; then the key is free": ["idempotencyHours"],
    "a key may be any printable text: ${JSON.stringify(key.slice(0, 40))} (${key.length})": ["idempotencyKeyLengthMax"],
    "a key may be nothing else: ${JSON.stringify(key.slice(0, 40))} (${key.length})": ["idempotencyKeyLengthMax"],
  },
  "quotas.test.ts": {
    "one key can have only so much kept a day by answers that are larger than what they changed, and others their own share": [
      "keptAnswerBytesMax",
    ],
  },
  "sign-in.test.ts": {
    "a session key has the scopes, the tier and the limits of the key it came from, for twelve hours": ["sessionKeyHours"],
    "the key of a link is good for signing in, once, within ten minutes, and for nothing else": ["linkKeyMinutes"],
    "a key has at most 100 session keys: one more ends the oldest": ["sessionKeysMax"],
    "a key signs in 100 times after a pause, then ten times a minute": ["signInsPerMinute", "signInsAtOnceMax"],
  },
  "oauth.test.ts": {
    "a key has at most 100 grants: one more ends the oldest": ["oauthGrantsMax"],
    "what cannot be consented to is refused by its name, and nothing is sent anywhere": ["oauthGrantDaysMax"],
    "a grant without another wish lasts 90 days": ["oauthGrantDaysDefault"],
  },
  "keys.test.ts": {
    "a rolled key keeps working with its successor until the overlap is over: ${says}": ["keyOverlapSecondsDefault"],
    "the last admin key that works is revoked, or given an end, only with force": ["adminKeysSearchedMax"],
  },
  "lists.test.ts": {
    "a page of ${name} has 20, newest first, unless it is asked for up to 100, and its last id leads to the next": [
      "listDefault",
      "listMax",
    ],
  },
  "retrievals.test.ts": {
    "of a query the first 1,000 characters are kept, whatever they are": ["retrievalQueryLengthMax"],
    "a retrieval is kept for retrieval_log_days, whatever the tier of its key, and no longer than its session": ["retrievalLogDaysMax"],
    "what else was asked for is kept up to 4,000 characters": ["retrievalRequestLengthMax"],
    "a retrieval of more users than it is found by is nobody's, and not logged": ["retrievalUsersMax"],
    "while the disk does not answer, 1,000 retrievals wait at most, no more than 500 of one key, and no reader for longer than a second": [
      "retrievalsWaitingMax",
    ],
  },
  "search.test.ts": {
    "ten are found unless a limit of up to 50 is asked for": ["searchDefault"],
    "nothing below the threshold is found: 0.7 unless another is asked for": ["searchThresholdDefault"],
    "of a long query explain shows the words that cover most, shortened, and how many more there are": [
      "explainedWordsMax",
      "explainedWordLengthMax",
    ],
    "of the searches and contexts that keys ask for at once, each key's few are under way, and those of others do not wait behind them": [
      "searchesAtOnceMax",
      "searchesOfKeyAtOnceMax",
    ],
  },
  "sessions.test.ts": {
    "a session made from an agent_id alone has every other field at its default": ["ttlSecondsDefault"],
  },
  "settings.test.ts": { "without any setting everything has its default, and says so": ["stateVersionsKeptDefault"] },
  "sockets.test.ts": {
    "bodies that are not complete take no more memory than there is for them, nor one key all of it": ["arrivingBytesMax"],
    "answers that are not read take no more memory than there is for them, nor one key all of it": ["unsentBytesMax"],
    "a body that is not complete when its time is up is refused, and its connection closed": ["bodySecondsMax", "bodyBytesPerSecondMin"],
    "a body that declares more than the limit is refused before any of it is sent, however large": ["bodyBytesMax"],
    "a chunked body is refused at the limit, without waiting for its end": ["bodyBytesMax"],
    "a body of exactly the limit is accepted, declared or in chunks, and one of a byte more is not": ["bodyBytesMax"],
  },
  "traces.test.ts": {
    "a trace has its details: ${name}": ["contentPreviewLength"],
  },
  "users.test.ts": {
    "of a user with many records the first 10,000 of each kind are counted": ["userRecordsCountedMax"],
    "users are listed by when they were seen last, with counts that stop at 100": ["listedUserRecordsCountedMax"],
  },
  "turn-search.test.ts": {
    "a turn of 60 KB is found by a sentence in its middle, which is the passage that is shown": ["turnPassageLengthMax"],
    "of a turn the first 100,000 characters are found": ["indexedTurnLengthMax"],
  },
  "turns.test.ts": {
    "records too large to be in memory together come on several pages, and a context shows the newest of them": ["pageBytesMax"],
  },
  "webhooks.test.ts": {
    "after a rotation both secrets verify for 24 hours, then the new one alone": ["webhookSecretOverlapHours"],
    "there can be 100 webhooks and no more": ["webhooksMax"],
  },
  "webhook-deliveries.test.ts": {
    "a delivery is shown with what is posted and its latest ten attempts, the last one first": ["deliveryAttemptsKept"],
    "what became of the deliveries of the last 24 hours is counted by the hour and by their status, up to 5,000 of each": [
      "deliveriesCountedMax",
    ],
    "a request makes at most 500 failed deliveries again, and says that there are more": ["recoveredAtOnceMax"],
  },
  "webhook-events.test.ts": {
    "events of 400 sessions are delivered eight at a time: in an eighth of the time that they take one after another": [
      "webhookSessionsAtOnceMax",
    ],
  },
  "webhook-retries.test.ts": { "deliveries are kept for 7 days, made or not, and what they posted goes with them": ["deliveryDays"] },
  "process/memory.test.ts": {
    "a body in chunks of one byte takes memory for its bytes, not for its chunks": ["arrivingBytesMax"],
    "answers that nobody reads take a part of the memory that they would all take: ${answers}": ["unsentBytesMax"],
  },
  "unit/filters/filter.test.ts": { "what a member cannot be compared with is refused, by path and operator": ["filterLengthMax"] },
  "unit/http/body.test.ts": {
    "a body without a declared length takes its share of the memory for bodies as it comes, and gives it back": ["arrivingBytesMax"],
  },
  "unit/storage/page.test.ts": {
    "a search for records that finds none ends after the looks of one page": ["listProbesMax"],
  },
  "unit/search/indexer.test.ts": {
    "a search that would look at too much finds the newest that pass and those among the nearest": ["searchProbesMax"],
  },
};

/** The names of a file's tests, as they are written: templates too. */
function namesIn(text: string): Set<string> {
  return new Set(
    Array.from(text.matchAll(/^\s*(?:test|it|onEmbedded\("[^"]*"\))\(\s*(["`])(.*?)\1,\s*(?:async )?\(/gms), ([, , name = ""]) => name),
  );
}

/** The named tests that do not exist. */
function withoutTest(file: string, names: readonly string[]): string[] {
  const known = namesIn(readFileSync(join(import.meta.dir, file), "utf8"));
  return names.filter((name) => !known.has(name)).map((name) => `${file} › ${name}`);
}

test("every limit is held by a test that exists", () => {
  expect(Object.entries(HELD_BY).flatMap(([file, tests]) => withoutTest(file, Object.keys(tests)))).toEqual([]);
  const held = new Set<string>(Object.values(HELD_BY).flatMap((tests) => Object.values(tests).flat()));
  expect(Object.keys(LIMITS).filter((name) => !held.has(name))).toEqual([]);
});

test("a test that does not exist is found out", () => {
  const names = ["there can be 100 webhooks and no more", "there can be 100 webhooks and one more"];
  expect(withoutTest("webhooks.test.ts", names)).toEqual([`webhooks.test.ts › ${names[1]}`]);
});
