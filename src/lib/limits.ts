/**
 * Every limit of the API, with its unit in its name.
 *
 * @module
 */
const MIB = 1024 * 1024;

/**
 * Memory of each cache in bytes. With those bounded by their number of entries (at most 6 MB: tokens of texts,
 * hashes, times, filters, buckets of rate limits) all caches together stay below 80 MB.
 */
export const CACHE_BYTES_MAX = {
  /**
   * Rows with the answer that shows them, or with what of a search result shows them. Reading sessions drawn at random from 5,000
   * takes .84 of the processor time that it takes with 7 MiB.
   */
  sessions: 20 * MIB,
  memories: 12 * MIB,
  removals: MIB / 4,
  erasures: MIB / 16,
  webhooks: MIB / 4,
  provider: MIB / 16,
  documentRemovals: MIB / 16,
  recentTurns: 5 * MIB,
  /** Vectors of the sessions and users that were searched last: twenty bytes for each. */
  residentVectors: 17 * MIB,
  /** And which those of the namespaces of documents that were searched last. */
  residentDocumentVectors: 4 * MIB,
  /** Vectors that pass the filters that were searched with last: a bit each. For each collection. */
  filterBitmaps: MIB / 2,
  /** Vectors that an embedding provider gave for queries. */
  queryVectors: 3 * MIB,
  /** Words with the tokens that they have: four thousand. */
  wordTokens: (3 * MIB) / 4,
} as const;

export const LIMITS = {
  ttlSecondsDefault: 86_400,
  ttlSecondsMax: 2_592_000,

  bodyBytesMax: 1_048_576,
  /** All bodies of requests that are not answered yet share this; one API key gets at most half of it. */
  arrivingBytesMax: 64 * MIB,
  /** A body has this long to arrive, and a long one as long as it takes at the rate below. */
  bodySecondsMax: 30,
  bodyBytesPerSecondMin: 32 * 1024,
  /** Objects and arrays inside each other in a caller's own JSON: state, metadata, snapshots. */
  jsonDepthMax: 64,
  /** Members of a message of MCP, besides those in the arguments of a tool. */
  mcpMembersMax: 1_000,
  metadataBytesMax: 65_536,

  /** Lengths count Unicode code points. */
  agentIdLengthMax: 256,
  userIdLengthMax: 256,
  externalIdLengthMax: 256,
  memoryContentLengthMax: 10_000,
  memoryTypeLengthMax: 64,
  /** Memories whose place one takes. */
  supersededMax: 32,
  /** Memories like a new one that its answer lists. */
  similarDefault: 5,
  similarMax: 10,
  /** Pinned memories of an owner. */
  pinnedMemoriesMax: 20,
  /** Memories of one batch. */
  memoryBatchMax: 100,
  /** Memories that are forgotten by one request. */
  forgottenMax: 1_000,
  forgottenDefault: 100,
  /** Memories that a dry run shows. */
  forgottenShown: 10,
  /** A century. */
  memoryTtlSecondsMax: 3_155_760_000,
  /** Types that one search looks for. */
  memoryTypesMax: 64,
  tagLengthMax: 128,
  tagsMax: 64,
  reasonLengthMax: 10_000,
  queryLengthMax: 10_000,
  keyNameLengthMax: 256,
  /** Keys that are searched for another admin key; when none is among them, the one that is to end counts as the last. */
  adminKeysSearchedMax: 10_000,
  /** Session keys that one API key has at a time; one more ends the oldest. */
  sessionKeysMax: 100,
  sessionKeyHours: 12,
  /** Applications that are connected with one API key; one more ends the oldest. */
  oauthGrantsMax: 100,
  oauthGrantDaysDefault: 90,
  oauthGrantDaysMax: 365,
  linkKeyMinutes: 10,
  /** Sign-ins of one API key, which need not be allowed to change anything else. */
  signInsPerMinute: 10,
  signInsAtOnceMax: 100,
  keyOverlapSecondsDefault: 86_400,
  keyOverlapSecondsMax: 604_800,
  idempotencyKeyLengthMax: 255,

  turnsAtOnceMax: 100,
  stepMemoriesMax: 20,
  /** The text that a turn is found by, in units of UTF-16: what lies beyond is not found. */
  indexedTurnLengthMax: 100_000,
  /** The passage that a search shows of a turn, in code points. */
  turnPassageLengthMax: 300,
  /** Newest turns of a session that its fork begins with, unless these are all. */
  forkTurnsMax: 1_000,
  /** One forked from another, each with memories of its own, all of which the last one shows. */
  forkMemorySessionsMax: 32,

  listDefault: 20,
  listMax: 100,
  /** A page, or the turns of a context, ends with the record that goes beyond this: all of it is in memory until it is sent. */
  pageBytesMax: 8 * MIB,
  /** All answers over 64 KiB that clients have not read to their end share this; one API key gets at most half of it. */
  unsentBytesMax: 128 * MIB,
  /** Look-ups in indexes for one page of a list, some 50 ms. Then the page ends with `has_more`, full or not. */
  listProbesMax: 50_000,
  /** Look-ups for one filtered search, a second with others answered in between. Then what was found by then has to do. */
  searchProbesMax: 1_000_000,
  /** Memories that one search, or context, compares with its filter, and fewer long ones. */
  memoryRowsMax: 10_000,
  documentOperationsMax: 100,
  namespaceDepthMax: 16,
  /** A namespace and a key together, in bytes of UTF-8: both are in keys of the store, as hex. */
  documentNameBytesMax: 900,
  /** Documents that one batch looks at and changes to copy, or to delete by a filter: it holds up other changes. */
  documentBulkRowsMax: 1_000,
  documentBulkChangesMax: 200,
  documentListDefault: 100,
  documentListMax: 1_000,
  /** Documents that one request looks at, for all of its operations. */
  documentRowsMax: 10_000,
  /** Budget of one request for all of its operations, as probes of an index: a document that is compared is one for 500 characters. */
  documentProbesMax: 500_000,
  /** Queries that take longer than a turn of the event loop at the same time; others wait. Of one API key at most half. */
  documentQueriesAtOnceMax: 4,
  documentQueriesOfKeyAtOnceMax: 2,
  /** The text that a document is found by, in code points, and the paths in its value that make it up. */
  documentTextLengthMax: 10_000,
  documentIndexPathsMax: 16,
  documentIndexPathLengthMax: 256,
  /** Searches of one request, and how far down their pages go. */
  documentSearchesMax: 10,
  documentSearchDepthMax: 200,
  filterPathsMax: 32,
  /** Number of `$and`, `$or` and `$not` may be in each other. */
  filterDepthMax: 4,
  filterValuesMax: 100,
  /** Characters of a text that is looked for within others. */
  filterPartLengthMax: 256,
  /** Characters of JSON; of documents a filter may be as long as a body, and counts by its length. */
  filterLengthMax: 32_768,
  /** Members of values that one operation asks for. */
  documentFieldsMax: 32,
  /** Code points that are kept of the query of a retrieval. */
  retrievalQueryLengthMax: 1_000,
  /** Characters of the JSON that is kept of what a retrieval was asked for besides; more is not kept. */
  retrievalRequestLengthMax: 4_000,
  /** Users whom a retrieval shows or names; one of more is not logged. */
  retrievalUsersMax: 64,
  retrievalNoteLengthMax: 1_000,
  retrievalLogDaysMax: 365,
  /** Retrievals that wait to be logged; further ones are not. Of one API key at most half. */
  retrievalsWaitingMax: 1_000,
  contextMemoriesDefault: 5,
  contextMemoriesMax: 20,
  contextTurnsDefault: 10,
  contextTurnsMax: 50,
  /** The largest budget of a context; texts are counted as far. */
  contextTokensMax: 200_000,
  /** Least length of a memory, or a turn, that a context shortens, in tokens. */
  contextShortenedTokensMin: 40,
  /** Searches that hold candidates or results in memory, contexts with a query included; others wait. Of one API key at most half. */
  searchesAtOnceMax: 16,
  searchesOfKeyAtOnceMax: 8,
  searchDefault: 10,
  searchMax: 50,
  searchThresholdDefault: 0.7,
  /** After how many days half of a memory's recency is left, at most: ten thousand years. */
  halfLifeDaysMax: 3_650_000,
  /** Words of the query that `explain` shows for each result, and characters of each word. */
  explainedWordsMax: 50,
  explainedWordLengthMax: 64,

  /** Versions kept of each session, besides the initial one. */
  stateVersionsKeptDefault: 1_000,
  stateVersionsKeptMin: 2,
  stateVersionsKeptMax: 1_000_000_000,
  /** Contents kept of each memory, besides the present one. */
  memoryVersionsKeptDefault: 20,
  memoryVersionsKeptMax: 100,
  maxStoreBytesMin: MIB,
  maxStoreBytesMax: 2 ** 50,

  /** Streams of events at a time on a server. Each holds 256 KiB at most that its reader has not taken. */
  eventStreamsMax: 100,
  eventStreamsOfKeyMax: 10,
  eventCommentSeconds: 20,

  /** Records of each kind that are counted of one user, and of each user in a list. */
  userRecordsCountedMax: 10_000,
  listedUserRecordsCountedMax: 100,

  /** Backups that a server keeps of those it was asked for over HTTP. */
  backupsMax: 20,
  scheduledBackupsMax: 100,
  /** A download begins within this time of its ticket. */
  ticketSeconds: 60,
  /** Tickets at a time; one more ends the oldest. */
  ticketsMax: 1_000,

  idempotencyHours: 24,
  /**
   * Bytes that one API key may have kept within those hours by answers that are larger than what they changed, on each server; as much
   * again is free by the end of them.
   */
  keptAnswerBytesMax: 256 * MIB,
  webhooksMax: 100,
  webhookDescriptionLengthMax: 256,
  webhookSecretLengthMin: 16,
  webhookSecretLengthMax: 255,
  webhookSecretOverlapHours: 24,
  /** Sessions of one webhook that are delivered to at the same time; one event at a time for each session. */
  webhookSessionsAtOnceMax: 8,
  deliveryDays: 7,
  /** Attempts that are shown of a delivery, the latest ones. */
  deliveryAttemptsKept: 10,
  /** Deliveries of each status that are counted of one webhook and day. */
  deliveriesCountedMax: 5_000,
  /** Failed deliveries that one request has made again. */
  recoveredAtOnceMax: 500,
  contentPreviewLength: 100,
} as const;
