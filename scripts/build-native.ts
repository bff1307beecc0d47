/**
 * Compiles the two native add-ons with the system's C++ compiler, and nothing else: no node-gyp, no Python, no headers
 * from the network.
 *
 *     bun scripts/build-native.ts               every build of them, for the executable
 *     bun scripts/build-native.ts --host-only   only what running from source needs on this machine
 *
 * hnswlib-node comes as source only and leaves the distance functions to the compiler's flags, so there is one build per
 * level of the instruction set. lmdb comes with a binary, but the LMDB in it ends the process where a write could fail
 * (`LMDB_PATCHES`); ours is the same source with those places mended, in one compilation unit, which halves the time. Both
 * carry their own libstdc++, so that they need no library but glibc.
 *
 * A build is kept under `native/<architecture>/` next to a key made from its sources, its flags and the compiler, and
 * done again only when the key differs. The ones for this machine are also put where `import "lmdb"` and
 * `import "hnswlib-node"` look first, so that running from source needs no preload.
 *
 * @module
 */
import { createHash, randomUUID } from "node:crypto";
import {
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { availableParallelism } from "node:os";
import { dirname, join, relative } from "node:path";
import { bestSimdLevel, cpuFlags } from "../src/lib/native.ts";
import { Failure, runScript } from "./failure.ts";

/** The processors Cairn is built for, as `process.arch` names them. */
export type Architecture = "x64" | "arm64";

interface Recipe {
  readonly name: string;
  /** Directories under node_modules that are compiled or included. */
  readonly sources: readonly string[];
  /** All that decides the result besides the sources and the compiler. */
  readonly flags: readonly string[];
  compile(compiler: string, output: string): Promise<void>;
}

const root = dirname(import.meta.dir);
const modules = join(root, "node_modules");

// Both packages use the stable C interface of Node 18.12 and later; NAPI_VERSION keeps them to what Bun has of it.
const COMMON_FLAGS = ["-O3", "-fPIC", "-DNAPI_VERSION=8", "-DNAPI_DISABLE_CPP_EXCEPTIONS"];
const LINK_FLAGS = ["-shared", "-pthread", "-static-libstdc++", "-static-libgcc", "-s"];

const HNSW_FLAGS: Record<Architecture, Record<string, readonly string[]>> = {
  x64: { "hnsw-sse": [], "hnsw-v3": ["-march=x86-64-v3"], "hnsw-v4": ["-march=x86-64-v4"] },
  // hnswlib has no NEON code of its own: only when sums may be reordered does the compiler turn its loops into vector
  // instructions. Not -ffast-math: linked with it, a library sets tiny numbers to zero in all that loads it.
  arm64: { "hnsw-neon": ["-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno", "-ffp-contract=fast"] },
};

const LMDB_C = ["lmdb/libraries/liblmdb/mdb.c", "lmdb/libraries/liblmdb/midl.c", "lmdb/libraries/liblmdb/chacha8.c", "lz4/lib/lz4.c"];
const LMDB_CPP = ["lmdb-js", "writer", "env", "compression", "ordered-binary", "misc", "txn", "dbi", "cursor", "v8-functions"];
const LMDB_DEFINES = ["-DMDB_MAXKEYSIZE=0", "-DMDB_USE_ROBUST", "-DNODE_GYP_MODULE_NAME=lmdb"];

/** What a damaged page gets who reads it. A transaction that writes is over with it; one that reads is not. */
const CORRUPTED = String.raw`
static int
cairn_corrupted(MDB_txn *txn)
{
	if (!F_ISSET(txn->mt_flags, MDB_TXN_RDONLY)) txn->mt_flags |= MDB_TXN_ERROR;
	return MDB_CORRUPTED;
}
`;

/** Entries are page numbers, those below 0 the length of the block that the next one begins, or 0 for nothing. */
const FREE_LIST_CHECK = String.raw`${CORRUPTED}
static int
cairn_free_list_is_sound(MDB_txn *txn, MDB_val *data)
{
	const MDB_ID *list = data->mv_data;
	size_t i, length;
	if (data->mv_size < sizeof(MDB_ID)) return 0;
	length = data->mv_size / sizeof(MDB_ID) - 1;
	if (list[0] > length) return 0;
	for (i = 1; i <= list[0]; i++) {
		pgno_t pages = 1;
		if (list[i] == 0) continue;
		if ((ssize_t)list[i] < 0) {
			pages = -(ssize_t)list[i];
			if (++i > list[0]) return 0;
		}
		if (list[i] < NUM_METAS || list[i] >= txn->mt_next_pgno || pages > txn->mt_next_pgno - list[i]) return 0;
	}
	return 1;
}

`;

/**
 * Whatever is in a page that this lets pass, nothing outside of it is read. Most of it is looked at once for each time that a
 * page was written: its number and the transaction that wrote it stand in its head, and both in one word of a table of those
 * seen last, which other threads may read and write at the same time.
 */
const PAGE_CHECK = String.raw`
#define CAIRN_SOUND_PAGES 65536
static int
cairn_page_is_sound(MDB_cursor *mc, const MDB_page *p, pgno_t pgno)
{
	MDB_env *env = mc->mc_txn->mt_env;
	unsigned flags = p->mp_flags & ~(P_DIRTY_OVF|P_LOOSE|P_KEEP), room = env->me_psize - PAGEBASE, upper = p->mp_upper, i, count;
	uint64_t seal, *slot;
	/* A later transaction than this one would be taken for one under way, and the page written to where it is. */
	if (p->mp_pgno != pgno || p->mp_txnid > mc->mc_txn->mt_txnid) return 0;
	if (flags == P_OVERFLOW) return p->mp_pages > 0 && p->mp_pages <= mc->mc_txn->mt_next_pgno - pgno;
	if (flags != P_BRANCH && flags != P_LEAF) return 0;
	count = NUMKEYS(p);
	if (count == 0 || p->mp_lower & 1 || p->mp_lower > upper || upper > room) return 0;
	if (env->me_sound == NULL) {
		uint64_t *table = calloc(CAIRN_SOUND_PAGES, sizeof(uint64_t)), *none = NULL;
		if (table != NULL && !__atomic_compare_exchange_n(&env->me_sound, &none, table, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) free(table);
	}
	seal = (pgno * 0x9E3779B97F4A7C15ull ^ p->mp_txnid * 0xC2B2AE3D27D4EB4Full ^ ((uint64_t)count << 32 | upper)) | 1;
	slot = env->me_sound == NULL ? NULL : &env->me_sound[pgno % CAIRN_SOUND_PAGES];
	if (slot != NULL && __atomic_load_n(slot, __ATOMIC_RELAXED) == seal) return 1;
	for (i = 0; i < count; i++) {
		unsigned at = p->mp_ptrs[i], end, size;
		const MDB_node *node;
		if (at < upper || at & 1 || at + NODESIZE > room) return 0;
		node = NODEPTR(p, i);
		end = at + NODESIZE + node->mn_ksize;
		if (node->mn_ksize > ENV_MAXKEY(env) || end > room) return 0;
		if (flags == P_BRANCH) {
			if (NODEPGNO(node) < NUM_METAS) return 0;
			continue;
		}
		if (node->mn_flags & ~(F_BIGDATA|F_SUBDATA)) return 0;
		size = F_ISSET(node->mn_flags, F_BIGDATA) ? sizeof(MDB_ovpage) : NODEDSZ(node);
		if (size > room - end) return 0;
		if (F_ISSET(node->mn_flags, F_SUBDATA)) {
			MDB_db table;
			if (F_ISSET(node->mn_flags, F_BIGDATA) || size != sizeof(MDB_db)) return 0;
			memcpy(&table, NODEDATA(node), sizeof(table));
			if (table.md_flags != 0 || table.md_depth > CURSOR_STACK) return 0;
		}
	}
	if (slot != NULL) __atomic_store_n(slot, seal, __ATOMIC_RELAXED);
	return 1;
}

static int
cairn_ovpage_get(MDB_cursor *mc, const MDB_ovpage *ovp, MDB_page **ret)
{
	int rc = MDB_PAGE_GET(mc, ovp->op_pgno, ovp->op_pages, ret);
	if (rc == 0 && (!IS_OVERFLOW(*ret) || (*ret)->mp_pages != ovp->op_pages)) return cairn_corrupted(mc->mc_txn);
	return rc;
}

`;

const MDB_C = "dependencies/lmdb/libraries/liblmdb/mdb.c";
/** What is changed in lmdb's source, wherever it stands; in `mdb.c` unless another file is named. */
const LMDB_PATCHES: readonly { file?: string; why: string; from: string; to: string }[] = [
  {
    why: "What is said of a write that failed has 108 characters: on a full disk that ended the process.",
    from: "last_error = malloc(100)",
    to: "last_error = malloc(512)",
  },
  {
    why: "It was printed too, in the middle of a line, beside being given to whoever writes.",
    from: 'fprintf(stderr, "Write error: %s position %u, size %u", strerror(rc), wpos, wsize);',
    to: "",
  },
  {
    why: "A map that cannot grow, where the address space is limited, was gone altogether: the next read ended the process. Now the one there was stays, also for other threads meanwhile.",
    from: "env->me_map = mmap(addr, env->me_mapsize, prot, mmap_flags,\n\t\tenv->me_fd, 0);\n\tif (env->me_map == MAP_FAILED) {\n\t\tenv->me_map = NULL;\n\t\treturn ErrCode();\n\t}",
    to: "void *map = mmap(addr, env->me_mapsize, prot, mmap_flags, env->me_fd, 0);\n\tif (map == MAP_FAILED) return ErrCode();\n\tenv->me_map = map;",
  },
  {
    why: "And so does its size.",
    from: "rc = mdb_env_map(env, old);\n\t\tif (rc)\n\t\t\treturn rc;\n\t\t}",
    to: "rc = mdb_env_map(env, old);\n\t\tif (rc) { env->me_mapsize = last_map->mapsize; env->me_last_map = last_map->last_map; free(last_map); return rc; }\n\t\t}",
  },
  {
    why: "The same for who needs a larger map: without it a write fails, and is tried with a larger one the next time.",
    from: "rc = mdb_env_set_mapsize(env, new_size);\n\t/* </lmdb-js addition> */",
    to: "rc = mdb_env_set_mapsize(env, new_size); if (rc) goto fail;\n\t/* </lmdb-js addition> */",
  },
  {
    why: "And for who begins to read, or to write, what another process has made longer than the map.",
    from: "mdb_env_set_mapsize(env, new_size);\n\t\t}\n\t\t/* </lmdb-js change> */",
    to: "rc = mdb_env_set_mapsize(env, new_size); if (rc) { mdb_txn_end(txn, new_notls | MDB_END_FAIL_BEGIN); return rc; }\n\t\t}\n\t\t/* </lmdb-js change> */",
  },
  {
    why: "The text of an error was put together in 300 bytes however long it was, which corrupted the heap; and two threads could take the same reason, one of which found it gone.",
    from: "if (last_error) {",
    to: "char* reason = __atomic_exchange_n(&last_error, NULL, __ATOMIC_ACQ_REL);\n\t\tif (reason) {",
  },
  {
    why: "The first part is one of LMDB's texts or the system's: none has 512 bytes.",
    from: "char* error = malloc(300);",
    to: "char* error = malloc(512 + strlen(reason));",
  },
  { why: "The second part is the reason that was taken above.", from: "strcat(error, last_error);", to: "strcat(error, reason);" },
  {
    why: "The text of a read that failed was made a part of the next one's: it grew with each.",
    from: "last_error = mdb_strerror(rc);",
    to: "last_error = NULL; last_error = mdb_strerror(rc);",
  },
  {
    file: "src/writer.cpp",
    why: "A write transaction that could not begin kept the lock, and its commit was never settled: every later write waited for good. Now it is tried again until it can begin, or until a fatal error of the environment ends the process.",
    from: "if (rc != 0) {\n\t\tresultCode = rc;\n\t\treturn;",
    to: "if (rc != 0 && rc != MDB_PANIC) {\n\t\tusleep(100000);\n\t\tgoto retry;\n\t}\n\tif (rc != 0) {\n\t\tresultCode = rc;\n\t\tpthread_mutex_unlock(envForTxn->writingLock);\n\t\treturn;",
  },
  {
    why: "A damaged page was taken as it stood: a read outside of it ended the process. Now who meets one gets MDB_CORRUPTED, and the rest can still be read.",
    from: "static int\nmdb_page_get(MDB_cursor *mc, pgno_t pgno,",
    to: `${PAGE_CHECK}static int\nmdb_page_get(MDB_cursor *mc, pgno_t pgno,`,
  },
  {
    why: "Where that check is made: for every page that comes from the file.",
    from: "MDB_env *env = txn->mt_env;\n\t\tp = (MDB_page *)(env->me_map + env->me_psize * pgno);\n\t}",
    to: "MDB_env *env = txn->mt_env;\n\t\tp = (MDB_page *)(env->me_map + env->me_psize * pgno);\n\t\tif (!cairn_page_is_sound(mc, p, pgno)) return cairn_corrupted(txn);\n\t}",
  },
  {
    why: "It remembers which pages it has looked at.",
    from: "\tHANDLE\t\tme_fd;\t\t/**< The main data file */",
    to: "\tuint64_t\t*me_sound;\n\tHANDLE\t\tme_fd;\t\t/**< The main data file */",
  },
  {
    why: "And forgets them when the file is closed.",
    from: "\tfree(env->me_pbuf);\n",
    to: "\tfree(env->me_pbuf);\n\tfree(env->me_sound);\n\tenv->me_sound = NULL;\n",
  },
  {
    why: "A page number beyond the end was printed, and made everything else unreadable until the next transaction.",
    from: 'fprintf(stderr, "page %u not found error\\n", pgno);\n\n\t\ttxn->mt_flags |= MDB_TXN_ERROR;\n\t\treturn MDB_PAGE_NOTFOUND;',
    to: "return cairn_corrupted(txn);",
  },
  {
    why: "The same for a page of another kind than it should be.",
    from: 'fprintf(stderr, "internal error, index points to a %02X page!?\\n",\n\t\t\t\tmp->mp_flags);\n\t\tmc->mc_txn->mt_flags |= MDB_TXN_ERROR;\n\t\treturn MDB_CORRUPTED;',
    to: "return cairn_corrupted(mc->mc_txn);",
  },
  {
    why: "And for a tree deeper than any.",
    from: 'fprintf(stderr, "excess cursor stack error\\n");\n\n\t\tmc->mc_txn->mt_flags |= MDB_TXN_ERROR;\n\t\treturn MDB_CURSOR_FULL;',
    to: "if (!F_ISSET(mc->mc_txn->mt_flags, MDB_TXN_RDONLY)) mc->mc_txn->mt_flags |= MDB_TXN_ERROR;\n\t\treturn MDB_CURSOR_FULL;",
  },
  ...["IS_LEAF(mp)", "IS_LEAF(mc->mc_pg[mc->mc_top])", "root > 1"].map((holds) => ({
    why: "An assertion about what is in the file ends the process; an error does not.",
    from: `mdb_cassert(mc, ${holds});`,
    to: `if (!(${holds})) return cairn_corrupted(mc->mc_txn);`,
  })),
  {
    why: "The same, about a branch with one page below it.",
    from: "mdb_cassert(mc, !mc->mc_dbi || NUMKEYS(mp) > 1);",
    to: "if (mc->mc_dbi && NUMKEYS(mp) < 2) return cairn_corrupted(mc->mc_txn);",
  },
  ...["mdb_page_alloc error", "mdb_page_touch error"].map((name) => ({
    why: "A transaction that fails says so to who began it, and not on standard error.",
    from: `fprintf(stderr, "${name}\\n");`,
    to: "",
  })),
  {
    why: "The same for one that removes a row.",
    from: 'fprintf(stderr, "cursor_del0 failed, %i\\n", rc);',
    to: "",
  },
  {
    file: "src/cursor.cpp",
    why: "A descending range whose beginning is on a damaged page began at the end of the table instead.",
    from: "if (rc)\n\t\t\t\t\trc = mdb_cursor_get(cursor, &key, &data, MDB_LAST);\n\t\t\t\telse if",
    to: "if (rc == MDB_NOTFOUND)\n\t\t\t\t\trc = mdb_cursor_get(cursor, &key, &data, MDB_LAST);\n\t\t\t\telse if (rc) {}\n\t\t\t\telse if",
  },
  {
    why: "The next page of a level is of the kind of the one before.",
    from: "if ((rc = MDB_PAGE_GET(mc, NODEPGNO(indx), 1, &mp)) != 0) {",
    to: "rc = MDB_PAGE_GET(mc, NODEPGNO(indx), 1, &mp);\n\tif (rc == 0 && ((mp->mp_flags ^ mc->mc_pg[mc->mc_snum]->mp_flags) & (P_BRANCH|P_LEAF|P_OVERFLOW))) rc = cairn_corrupted(mc->mc_txn);\n\tif (rc != 0) {",
  },
  ...["mc", "&mc"].map((cursor) => ({
    why: "A large value is on pages for that, as many as its entry says.",
    from: `MDB_PAGE_GET(${cursor}, ovp.op_pgno, ovp.op_pages, &omp)`,
    to: `cairn_ovpage_get(${cursor}, &ovp, &omp)`,
  })),
  {
    why: "And no longer than they are.",
    from: "\tdata->mv_data = METADATA(omp);\n\tMC_SET_OVPG(mc, omp);",
    to: "\tif (data->mv_size > (size_t)omp->mp_pages * mc->mc_txn->mt_env->me_psize - PAGEHDRSZ) return cairn_corrupted(mc->mc_txn);\n\tdata->mv_data = METADATA(omp);\n\tMC_SET_OVPG(mc, omp);",
  },
  {
    why: "A list of free pages is as long as it says, and names pages that there are.",
    from: "\t\tidl = (MDB_ID *) data.mv_data;\n\t\ti = idl[0];\n",
    to: "\t\tidl = (MDB_ID *) data.mv_data;\n\t\tif (!cairn_free_list_is_sound(txn, &data)) { rc = cairn_corrupted(txn); goto fail; }\n\t\ti = idl[0];\n",
  },
  {
    why: "Its check has to be known before it is used.",
    from: "/** Allocate page numbers and memory for writing.",
    to: `${FREE_LIST_CHECK}/** Allocate page numbers and memory for writing.`,
  },
  {
    why: "A copy has room for branches as deep as the first path through the tree.",
    from: "\t/* Make cursor pages writable */\n",
    to: "\tunsigned depth = mc.mc_snum;\n",
  },
  {
    why: "So a path that is of another depth must not be followed.",
    from: "rc = MDB_PAGE_GET(&mc, pg, 1, &mp);\n",
    to: "rc = MDB_PAGE_GET(&mc, pg, 1, &mp);\n\t\t\t\tif (rc == 0 && !F_ISSET(mp->mp_flags, mc.mc_top + 2u < depth ? P_BRANCH : P_LEAF)) rc = MDB_CORRUPTED;\n",
  },
];

/** Paths of the add-ons for an architecture, by name, whether they are built yet or not. */
export function addonPaths(architecture: Architecture): Record<string, string> {
  const names = ["lmdb", ...Object.keys(HNSW_FLAGS[architecture])];
  return Object.fromEntries(names.map((name) => [name, join(root, "native", architecture, `${name}.node`)]));
}

/** Builds what is missing or out of date, and says so on standard error. */
export async function buildNative(options: { architecture: Architecture; hostOnly: boolean }): Promise<void> {
  const { architecture, hostOnly } = options;
  const compiler = compilerFor(architecture);
  const version = compilerVersion(compiler);
  const wanted = recipes(architecture).filter((recipe) => !hostOnly || ["lmdb", hostHnsw()].includes(recipe.name));
  const outdated = wanted.filter((recipe) => !isCurrent(recipe, architecture, version));
  if (outdated.length > 0) {
    if (version === null) throw new Failure(missingCompiler(compiler));
    console.error(`Compiling the native add-ons (${outdated.map((recipe) => recipe.name).join(", ")}) …`);
    await inParallel(outdated, (recipe) => build(recipe, { architecture, compiler, version }));
  }
  if (architecture === process.arch) installForSourceMode();
}

function recipes(architecture: Architecture): Recipe[] {
  return [lmdbRecipe(), ...Object.entries(HNSW_FLAGS[architecture]).map(([name, flags]) => hnswRecipe(name, flags))];
}

function hnswRecipe(name: string, variantFlags: readonly string[]): Recipe {
  const flags = ["-std=c++17", ...COMMON_FLAGS, ...variantFlags, "-fvisibility=hidden", "-DNODE_GYP_MODULE_NAME=addon", ...LINK_FLAGS];
  const includes = ["node-addon-api", "node-api-headers/include"].map((directory) => `-I${join(modules, directory)}`);
  return {
    name,
    sources: ["hnswlib-node/src", "node-addon-api", "node-api-headers/include"],
    flags,
    compile: (compiler, output) =>
      run([compiler, ...flags, ...includes, hidingPath(modules), join(modules, "hnswlib-node/src/addon.cc"), "-o", output]),
  };
}

function lmdbRecipe(): Recipe {
  const compileFlags = [...COMMON_FLAGS, ...LMDB_DEFINES, "-w"];
  const cppFlags = ["-std=c++17", "-fvisibility=hidden"];
  return {
    name: "lmdb",
    sources: ["lmdb/src", "lmdb/dependencies", "lmdb/node_modules/node-addon-api", "node-api-headers/include"],
    flags: [...compileFlags, ...cppFlags, ...LINK_FLAGS, ...LMDB_PATCHES.flatMap(({ file = MDB_C, from, to }) => [file, from, to])],
    async compile(compiler, output) {
      await inScratchDirectory(async (scratch) => {
        prepareLmdbSource(scratch);
        const includes = [...lmdbIncludes(scratch), hidingPath(scratch), hidingPath(modules)];
        // g++ takes `-x c` for the next file only.
        const sources = LMDB_C.flatMap((path) => ["-x", "c", join(scratch, "dependencies", path)]);
        await run([compiler, ...compileFlags, ...includes, "-c", ...sources], scratch);
        const objects = LMDB_C.map((path) => join(scratch, path.replace(/^.*\/(.*)\.c$/, "$1.o")));
        await run([compiler, ...cppFlags, ...compileFlags, ...includes, join(scratch, "all.cpp"), ...objects, ...LINK_FLAGS, "-o", output]);
      });
    },
  };
}

/** Assertions keep the path of their source: this cuts it to what is the same on every machine. */
function hidingPath(directory: string): string {
  return `-ffile-prefix-map=${directory}=.`;
}

/** A patched copy of lmdb's source, with one file that includes all of its C++ and the header it wants from Node. */
function prepareLmdbSource(scratch: string): void {
  for (const directory of ["src", "dependencies"]) cpSync(join(modules, "lmdb", directory), join(scratch, directory), { recursive: true });
  for (const { file = MDB_C, why, from, to } of LMDB_PATCHES) {
    const path = join(scratch, file);
    const pieces = readFileSync(path, "utf8").split(from);
    if (pieces.length === 1) throw new Failure(`lmdb's source no longer has "${from}": see whether the patch is still needed. ${why}`);
    writeFileSync(path, pieces.join(to));
  }
  writeFileSync(join(scratch, "all.cpp"), LMDB_CPP.map((name) => `#include "src/${name}.cpp"\n`).join(""));
  // Only compared with Node's own version to switch on V8 calls, which Bun does not have.
  writeFileSync(
    join(scratch, "node_version.h"),
    "#define NODE_MAJOR_VERSION 22\n#define NODE_MINOR_VERSION 0\n#define NODE_PATCH_VERSION 0\n",
  );
}

function lmdbIncludes(scratch: string): string[] {
  const own = ["", "src", "dependencies/lz4/lib", "dependencies/lmdb/libraries/liblmdb"].map((path) => join(scratch, path));
  // lmdb is written against version 6 of node-addon-api and brings it along; ours, 8, belongs to hnswlib-node.
  return [...own, join(modules, "lmdb/node_modules/node-addon-api"), join(modules, "node-api-headers/include")].map((path) => `-I${path}`);
}

async function build(recipe: Recipe, target: { architecture: Architecture; compiler: string; version: string }): Promise<void> {
  const output = artifactPath(recipe, target.architecture);
  mkdirSync(dirname(output), { recursive: true });
  const temporary = `${output}.${randomUUID()}`;
  try {
    await recipe.compile(target.compiler, temporary);
    renameSync(temporary, output);
  } finally {
    rmSync(temporary, { force: true });
  }
  writeFileSync(`${output}.key`, `${sourceKey(recipe)} ${target.version}\n`);
}

/** A compiler that is gone since does not matter: an image may be made with one and run without. */
function isCurrent(recipe: Recipe, architecture: Architecture, version: string | null): boolean {
  const output = artifactPath(recipe, architecture);
  if (!existsSync(output) || !existsSync(`${output}.key`)) return false;
  const key = readFileSync(`${output}.key`, "utf8");
  return version === null ? key.startsWith(`${sourceKey(recipe)} `) : key === `${sourceKey(recipe)} ${version}\n`;
}

function sourceKey(recipe: Recipe): string {
  const hash = createHash("sha256").update(JSON.stringify(recipe.flags));
  for (const source of recipe.sources) {
    const directory = join(modules, source);
    if (!existsSync(directory)) throw new Failure(`node_modules/${source} is missing: run scripts/setup.`);
    for (const path of filesBelow(directory)) hash.update(`${relative(modules, path)}\0`).update(readFileSync(path));
  }
  return hash.digest("hex");
}

/** Every file in a directory and those inside it, in an order that is the same everywhere. */
export function filesBelow(directory: string): string[] {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .toSorted();
}

function artifactPath(recipe: Recipe, architecture: Architecture): string {
  return join(root, "native", architecture, `${recipe.name}.node`);
}

/** Both packages look into their own `build/Release` before anywhere else. */
function installForSourceMode(): void {
  const built = join(root, "native", process.arch);
  installFile(join(built, "lmdb.node"), join(modules, "lmdb/build/Release/lmdb.node"));
  installFile(join(built, `${hostHnsw()}.node`), join(modules, "hnswlib-node/build/Release/addon.node"));
}

/** By rename: a running process may have the old file mapped, and writing into it would change its code. */
function installFile(source: string, destination: string): void {
  if (existsSync(destination) && readFileSync(source).equals(readFileSync(destination))) return;
  mkdirSync(dirname(destination), { recursive: true });
  const temporary = `${destination}.${randomUUID()}`;
  copyFileSync(source, temporary);
  renameSync(temporary, destination);
}

function hostHnsw(): string {
  return process.arch === "x64" ? `hnsw-${bestSimdLevel(cpuFlags())}` : "hnsw-neon";
}

function compilerFor(architecture: Architecture): string {
  const cross = { x64: "x86_64-linux-gnu-g++", arm64: "aarch64-linux-gnu-g++" }[architecture];
  return process.env["CXX"] ?? (architecture === process.arch ? "c++" : cross);
}

function compilerVersion(compiler: string): string | null {
  if (Bun.which(compiler) === null) return null;
  return Bun.spawnSync([compiler, "--version"]).stdout.toString().split("\n")[0] ?? "";
}

function missingCompiler(compiler: string): string {
  const advice = "Install one (Debian, Ubuntu: apt-get install g++; Fedora: dnf install gcc-c++ libstdc++-static), or name yours in CXX.";
  return (
    `There is no C++ compiler (${compiler}), and the native add-ons have to be compiled once.\n` +
    (compiler === "c++" ? advice : "Install it, or name another one in CXX.")
  );
}

async function run(command: string[], cwd = root): Promise<void> {
  const child = Bun.spawn(command, { cwd, stdin: "ignore", stdout: "ignore", stderr: "pipe" });
  const [output, code] = await Promise.all([new Response(child.stderr).text(), child.exited]);
  if (code === 0) return;
  const ended = child.signalCode ? `was ended by ${child.signalCode} (out of memory?)` : `ended with code ${code}`;
  throw new Failure(`${command[0]} ${ended}:\n  ${command.join(" ")}\n${output.split("\n").slice(0, 20).join("\n")}`);
}

async function inScratchDirectory(work: (directory: string) => Promise<void>): Promise<void> {
  mkdirSync(join(root, "native"), { recursive: true });
  const directory = mkdtempSync(join(root, "native/scratch-"));
  try {
    await work(directory);
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Waits for all of them even when one fails, so that none is left running. */
async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const queue = [...items];
  const lanes = Array.from({ length: availableParallelism() }, async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) await work(item);
  });
  for (const lane of await Promise.allSettled(lanes)) if (lane.status === "rejected") throw lane.reason;
}

if (import.meta.main) {
  const architecture = process.arch === "arm64" ? "arm64" : "x64";
  await runScript(() => buildNative({ architecture, hostOnly: process.argv.includes("--host-only") }));
}
