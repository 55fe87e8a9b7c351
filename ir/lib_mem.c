/* Memory and unit entries with their parameters fixed.
 *
 * A memory's clauses are read into a Mem, a unit's CollUnit(..) into extents;
 * both are made once for each MemRef and UnitRef. `same X(..)` makes an entry
 * another name of X. */
#include "ir/lib_entry.h"

#include <string.h>

/* ---- memories ---------------------------------------------------------- */

typedef struct Word {
    const char *word;
    int value;
} Word;

/* Shared memory of a kernel begins at a multiple of so many bytes. */
enum { MAX_MEM_ALIGNMENT = 1024 };

static const Word families[] = {
    { "cpu", MEMF_cpu },           { "grid_constant", MEMF_grid_constant },
    { "global", MEMF_global },     { "shared", MEMF_shared },
    { "register", MEMF_register }, { "barrier", MEMF_barrier },
    { "map", MEMF_map },           { NULL, 0 }
};

static const Word barriers[] = { { "mbarrier", BARRIER_mbarrier },
                                 { "cp_async_group", BARRIER_cp_async_group },
                                 { "bulk_group", BARRIER_bulk_group },
                                 { "wgmma_group", BARRIER_wgmma_group },
                                 { "cluster", BARRIER_cluster },
                                 { NULL, 0 } };

static bool clause_error(Build *b, const AstClause *c, const char *expected)
{
    build_error(b, c->loc, "instr", "clause '%s' expects %s", c->key, expected);
    return false;
}

static bool word_value(Build *b, const AstClause *c, const Word *words,
                       int *out)
{
    for (; words->word; words++)
        if (c->head && c->head->kind == AST_name &&
            strcmp(words->word, c->head->name) == 0) {
            *out = words->value;
            return true;
        }
    return clause_error(b, c, "one of its words");
}

/* The items of a head: one, or those of a tuple or list. */
static unsigned head_items(const AstExpr *head, AstExpr *const **items,
                           AstExpr **one)
{
    if (head && (head->kind == AST_tuple || head->kind == AST_list)) {
        *items = head->args;
        return head->n;
    }
    *one = (AstExpr *)head;
    *items = one;
    return head ? 1 : 0;
}

static bool take_unsigned(Build *b, const AstClause *c, unsigned *out)
{
    int64_t n;
    if (!c->head || !build_const_int(b, c->head, c->key, &n))
        return c->head ? false : clause_error(b, c, "a number");
    if (n < 0 || n > 1 << 20)
        return clause_error(b, c, "a number that is not negative");
    *out = (unsigned)n;
    return true;
}

static bool take_rounds(Build *b, const AstClause *c, Mem *mem)
{
    if (!c->head || c->head->kind != AST_name ||
        strcmp(c->head->name, op_info(OP_arith_tf32_rn)->name) != 0)
        return clause_error(b, c, "tf32_rn");
    return mem->rounds_tf32 = true;
}

static bool take_scalar(Build *b, const AstClause *c, Mem *mem)
{
    AstExpr *one;
    AstExpr *const *items;
    unsigned n = head_items(c->head, &items, &one);
    for (unsigned i = 0; i < n; i++) {
        const char *word = items[i]->kind == AST_name ? items[i]->name : "";
        if (strcmp(word, "read") == 0)
            mem->scalar_read = true;
        else if (strcmp(word, "write") == 0)
            mem->scalar_write = true;
        else
            return clause_error(b, c, "read, write");
    }
    return true;
}

static bool take_elements(Build *b, const AstClause *c, Mem *mem)
{
    AstExpr *one;
    AstExpr *const *items;
    unsigned n = head_items(c->head, &items, &one);
    unsigned most = sizeof mem->elems / sizeof *mem->elems;
    for (unsigned i = 0; i < n; i++) {
        ScalarType t = build_scalar_type(b, items[i]);
        if (t == TY_none || mem->n_elems == most)
            return clause_error(b, c, "element types");
        mem->elems[mem->n_elems++] = t;
    }
    return true;
}

static bool take_parents(Build *b, const AstClause *c, Mem *mem)
{
    AstExpr *one;
    AstExpr *const *items;
    unsigned n = head_items(c->head, &items, &one);
    const MemRef **refs = ARENA_ARRAY(ctx_arena(b->ctx), const MemRef *, n);
    for (unsigned i = 0; i < n; i++) {
        refs[i] = build_mem(b, items[i]);
        if (!refs[i])
            return false;
    }
    mem->parents = refs;
    mem->n_parents = n;
    return true;
}

/* packed [16, N], or packed 2 for two dimensions of any extent. */
static bool take_packed(Build *b, const AstClause *c, Mem *mem)
{
    if (!c->head || c->head->kind != AST_list)
        return take_unsigned(b, c, &mem->packed);
    int64_t *shape = ARENA_ARRAY(ctx_arena(b->ctx), int64_t, c->head->n);
    for (unsigned i = 0; i < c->head->n; i++)
        if (!build_const_int(b, c->head->args[i], "packed", &shape[i]))
            return false;
    mem->packed = c->head->n;
    mem->packed_shape = shape;
    return true;
}

static void free_exprs(void *x)
{
    expr_ctx_free(x);
}

/* map r, c: thread, slot. */
static bool take_map(Build *b, const AstClause *c, Mem *mem)
{
    AstExpr *one;
    AstExpr *const *items;
    unsigned n = head_items(c->head, &items, &one);
    if (n == 0 || c->n != 2)
        return clause_error(b, c, "the index names, then thread, slot");
    ExprCtx *outer = b->x;
    size_t mark = build_mark(b);
    b->x = mem->map_exprs = expr_ctx_new();
    ctx_at_free(b->ctx, free_exprs, mem->map_exprs);
    for (unsigned i = 0; i < n; i++) {
        if (items[i]->kind != AST_name)
            return clause_error(b, c, "index names");
        VarId v = var_new(b->x, items[i]->name, VAR_index);
        if (mem->packed_shape && i < mem->packed)
            var_set_bounds(b->x, v, affine_const(b->x, 0),
                           affine_const(b->x, mem->packed_shape[i]));
        build_bind(b, items[i]->name, items[i]->loc, BIND_var)->var = v;
    }
    mem->map_thread = build_index(b, c->values[0]);
    mem->map_slot = build_index(b, c->values[1]);
    build_close(b, mark);
    b->x = outer;
    return mem->map_thread && mem->map_slot;
}

/* copies n, pitch. */
static bool take_copies(Build *b, const AstClause *c, Mem *mem)
{
    AstExpr *one;
    AstExpr *const *items;
    if (head_items(c->head, &items, &one) != 2)
        return clause_error(b, c,
                            "how many threads have an element, and how "
                            "far apart they are");
    if (!build_const_int(b, items[0], c->key, &mem->n_copies) ||
        !build_const_int(b, items[1], c->key, &mem->copy_pitch))
        return false;
    if (mem->n_copies < 1 || mem->n_copies > 1024 || mem->copy_pitch < 1 ||
        mem->copy_pitch > 1024)
        return clause_error(b, c, "two positive numbers");
    return true;
}

static bool take_units(Build *b, const AstClause *c, Mem *mem)
{
    const UnitRef *u = c->head ? build_unit(b, c->head) : NULL;
    if (!u)
        return c->head ? false : clause_error(b, c, "a unit");
    if (strcmp(c->key, "unit") == 0)
        mem->native_unit = u;
    else
        mem->mutate_unit = u;
    return true;
}

static bool take_clause(Build *b, const AstClause *c, Mem *mem)
{
    int word;
    unsigned n = 0;
    const char *key = c->key;
    if (strcmp(key, "where") == 0)
        return true;
    if (strcmp(key, "unit") == 0 || strcmp(key, "mutate") == 0)
        return take_units(b, c, mem);
    if (strcmp(key, "scalar") == 0)
        return take_scalar(b, c, mem);
    if (strcmp(key, "alignment") == 0)
        return take_unsigned(b, c, &mem->alignment);
    if (strcmp(key, "layout") == 0) {
        if (c->head && c->head->kind == AST_name &&
            strcmp(c->head->name, "linear") == 0)
            return true;
        const char *callee = c->head ? ast_callee(c->head) : NULL;
        if (!callee || strcmp(callee, "swizzle") != 0 || c->head->n != 2)
            return clause_error(b, c, "linear or swizzle(bytes)");
        AstClause inner = *c;
        inner.head = c->head->args[1];
        return take_unsigned(b, &inner, &mem->swizzle);
    }
    if (strcmp(key, "rounds") == 0)
        return take_rounds(b, c, mem);
    if (strcmp(key, "packed") == 0)
        return take_packed(b, c, mem);
    if (strcmp(key, "fills") == 0)
        return take_unsigned(b, c, &mem->fills);
    if (strcmp(key, "map") == 0)
        return take_map(b, c, mem);
    if (strcmp(key, "copies") == 0)
        return take_copies(b, c, mem);
    if (strcmp(key, "elements") == 0)
        return take_elements(b, c, mem);
    if (strcmp(key, "is") == 0)
        return take_parents(b, c, mem);
    if (strcmp(key, "sync_exempt") == 0)
        return mem->sync_exempt = true;
    if (strcmp(key, "persistent") == 0)
        return mem->persistent = true;
    if (strcmp(key, "slots") == 0) {
        bool ok = take_unsigned(b, c, &n);
        mem->n_slots = n;
        return ok;
    }
    if (strcmp(key, "pre_arrive") == 0) {
        bool ok = take_unsigned(b, c, &n);
        mem->pre_arrive = n;
        return ok;
    }
    if (strcmp(key, "quals") == 0) {
        if (!c->head || c->head->kind != AST_name ||
            qual_family_mask(c->head->name) == 0)
            return clause_error(b, c, "a family of qualitative timelines");
        mem->qual_family = c->head->name;
        return true;
    }
    if (strcmp(key, "family") == 0) {
        bool ok = word_value(b, c, families, &word);
        mem->family = ok ? (MemFamily)word : mem->family;
        return ok;
    }
    if (strcmp(key, "barrier") == 0) {
        bool ok = word_value(b, c, barriers, &word);
        mem->barrier = ok ? (BarrierKind)word : mem->barrier;
        return ok;
    }
    return clause_error(b, c, "to be a clause of memories");
}

/* The qualitative timelines that accesses of a memory of this family have. */
static const char *family_quals(const Mem *mem)
{
    switch (mem->family) {
    case MEMF_cpu:
        return "dram";
    case MEMF_register:
        return "rmem";
    case MEMF_barrier:
        return mem->barrier == BARRIER_mbarrier ? "mbarrier" : "ram";
    default:
        return "ram";
    }
}

/* What the clauses of an entry must be to each other, and their numbers. */
static bool clauses_fit(Build *b, const Entry *e, const Mem *mem)
{
    static const char *const needed[] = { "family", "quals" };
    for (unsigned i = 0; i < 2; i++)
        if (!entry_clause(e->decl, needed[i], NULL)) {
            build_error(b, e->decl->loc, "instr",
                        "memory '%s' has no %s clause", e->name, needed[i]);
            return false;
        }
    const char *quals = family_quals(mem);
    size_t n = strlen(quals);
    if (strncmp(mem->qual_family, quals, n) != 0 ||
        (mem->family != MEMF_register && mem->qual_family[n] != 0))
        return clause_error(
            b, entry_clause(e->decl, "quals", NULL),
            arena_printf(b->arena, "%s, as the family is", quals));
    if ((mem->alignment & (mem->alignment - 1)) ||
        mem->alignment > MAX_MEM_ALIGNMENT)
        return clause_error(b, entry_clause(e->decl, "alignment", NULL),
                            "a power of two up to 1024");
    if (mem->rounds_tf32 && (mem->family != MEMF_map || mem->n_elems != 1 ||
                             mem->elems[0] != TY_f32))
        return clause_error(b, entry_clause(e->decl, "rounds", NULL),
                            "a clause of tensor maps with elements f32");
    if (mem->swizzle &&
        (mem->family != MEMF_shared ||
         (mem->swizzle != 32 && mem->swizzle != 64 && mem->swizzle != 128)))
        return clause_error(b, entry_clause(e->decl, "layout", NULL),
                            "linear, or swizzle(32), (64) or (128) of "
                            "shared memory");
    return true;
}

/* The Mem of an entry: NULL after a report. */
static const Mem *mem_make(Lib *lib, Loc loc, const Entry *e, const MemRef *ref)
{
    Build b;
    unsigned n;
    const Param *args;
    const Mem *made = NULL;
    Arena *arena = arena_new();
    Mem *mem = ARENA_NEW(ctx_arena(lib->ctx), Mem);
    mem->n_copies = mem->copy_pitch = 1;
    bool ok = entry_open(&b, arena, lib, loc, e, ref->n_params, ref->params, &n,
                         &args) &&
              entry_where(&b, loc, e, n, args);
    const AstClause *same = entry_clause(e->decl, "same", NULL);
    if (ok && same && same->head) {
        const MemRef *other = build_mem(&b, same->head);
        made = other ? lib_mem(lib, loc, other) : NULL;
    } else if (ok) {
        Param *bare = ARENA_ARRAY(arena, Param, n);
        for (unsigned i = 0; i < n; i++) {
            bare[i] = args[i];
            bare[i].name = NULL;
        }
        mem->ref = memref_get(lib->ctx, e->name, n, bare);
        for (const AstClause *c = e->decl->clauses; ok && c; c = c->next)
            ok = take_clause(&b, c, mem);
        made = ok && clauses_fit(&b, e, mem) ? mem : NULL;
    }
    arena_free(arena);
    return made;
}

const Mem *lib_mem(Lib *lib, Loc loc, const MemRef *ref)
{
    const Mem *made = made_find(&lib->mems, ref);
    if (made)
        return made;
    const Entry *e = lib_find(lib, AST_memory, ref->name);
    if (!e) {
        Diag *d = diag_error(lib->ctx, loc, "memory", "%s",
                             lib_unknown_text(lib->ctx, "memory", ref->name));
        lib_fix_name(lib, d, AST_memory, ref->name,
                     "import the file that defines it");
        return NULL;
    }
    if (lib->depth > 16) {
        diag_error(lib->ctx, loc, "memory", "memory '%s' is defined by itself",
                   ref->name);
        return NULL;
    }
    lib->depth++;
    made = mem_make(lib, loc, e, ref);
    lib->depth--;
    if (made)
        made_add(lib, &lib->mems, ref, made);
    return made;
}

const Mem *lib_mem_find(Lib *lib, const MemRef *ref)
{
    const Mem *made = made_find(&lib->mems, ref);
    if (made || !lib_find(lib, AST_memory, ref->name))
        return made;
    return lib_mem(lib, (Loc){ 0 }, ref);
}

bool lib_rounds_tf32(Lib *lib, const MemRef *ref)
{
    const Mem *mem = lib && ref ? lib_mem_find(lib, ref) : NULL;
    return mem && mem->rounds_tf32;
}

static bool is_a(Lib *lib, const MemRef *sub, const MemRef *super,
                 unsigned depth)
{
    if (sub == super)
        return true;
    const Mem *m = depth ? lib_mem_find(lib, sub) : NULL;
    for (unsigned i = 0; m && i < m->n_parents; i++)
        if (is_a(lib, m->parents[i], super, depth - 1))
            return true;
    return false;
}

bool mem_is_a(Lib *lib, const MemRef *sub, const MemRef *super)
{
    const Mem *a = lib_mem_find(lib, sub), *b = lib_mem_find(lib, super);
    return is_a(lib, a ? a->ref : sub, b ? b->ref : super, 8);
}

bool mem_holds(const Mem *mem, ScalarType elem)
{
    bool found = mem->n_elems == 0;
    for (unsigned i = 0; i < mem->n_elems; i++)
        found |= mem->elems[i] == elem;
    return found;
}

/* ---- units ------------------------------------------------------------- */

/* One entry of a domain or box: a product of literals, blockDim, clusterDim,
 * with division by literals. */
static bool unit_extent(Build *b, const AstExpr *e, UnitExtent *x)
{
    int64_t n;
    if (e->kind == AST_name && strcmp(e->name, "blockDim") == 0) {
        x->block_dim++;
        return true;
    }
    if (e->kind == AST_name && strcmp(e->name, "clusterDim") == 0) {
        x->cluster_dim++;
        return true;
    }
    if (e->kind == AST_binary && e->op == '*')
        return unit_extent(b, e->args[0], x) && unit_extent(b, e->args[1], x);
    bool divide = e->kind == AST_binary && e->op == '/';
    if (divide && !unit_extent(b, e->args[0], x))
        return false;
    if (!build_const_int(b, divide ? e->args[1] : e, "unit", &n))
        return false;
    if (n <= 0 || n > 1 << 20 || x->num > 1 << 20 || x->den > 1 << 20) {
        build_error(b, e->loc, "unit",
                    "expected a positive factor of a unit's "
                    "extent, found %lld",
                    (long long)n);
        return false;
    }
    *(divide ? &x->den : &x->num) *= n;
    return true;
}

static bool unit_extents(Build *b, const AstExpr *e, bool box, unsigned *n,
                         UnitExtent **out)
{
    if (e->kind != AST_tuple || e->n == 0) {
        build_error(b, e->loc, "unit",
                    "CollUnit expects tuples for domain and "
                    "box");
        return false;
    }
    *n = e->n;
    *out = ARENA_ARRAY(ctx_arena(b->ctx), UnitExtent, e->n);
    for (unsigned i = 0; i < e->n; i++) {
        UnitExtent *x = &(*out)[i];
        *x = (UnitExtent){ .num = 1, .den = 1 };
        if (box && e->args[i]->kind == AST_none)
            x->agnostic = true;
        else if (!unit_extent(b, e->args[i], x))
            return false;
    }
    return true;
}

static bool unit_options(Build *b, const AstExpr *e, Unit *u)
{
    for (unsigned i = 3; i < e->n; i++) {
        const AstExpr *a = e->args[i];
        int64_t n;
        if (a->kind == AST_keyword && strcmp(a->name, "name") == 0)
            continue;
        if (a->kind != AST_keyword || strcmp(a->name, "scaled_dim_idx") != 0) {
            build_error(b, a->loc, "unit",
                        "CollUnit expects domain, box and "
                        "scaled_dim_idx=..");
            return false;
        }
        if (a->args[0]->kind == AST_none)
            continue;
        if (!build_const_int(b, a->args[0], "scaled_dim_idx", &n))
            return false;
        if (n < 0 || n >= u->n || u->box[n].agnostic) {
            build_error(b, a->loc, "unit",
                        "scaled_dim_idx expects the number "
                        "of a dimension of the box, found %lld",
                        (long long)n);
            return false;
        }
        u->scaled_dim = (int)n;
    }
    return true;
}

static bool unit_read(Build *b, const AstExpr *e, Unit *u)
{
    unsigned n_box;
    UnitExtent *domain, *box;
    if (e->kind != AST_call || !ast_callee(e) ||
        strcmp(ast_callee(e), "CollUnit") != 0 || e->n < 3) {
        build_error(b, e->loc, "unit", "expected CollUnit(domain, box, ..)");
        return false;
    }
    if (!unit_extents(b, e->args[1], false, &u->n, &domain) ||
        !unit_extents(b, e->args[2], true, &n_box, &box))
        return false;
    if (n_box != u->n) {
        build_error(b, e->loc, "unit",
                    "CollUnit expects a box of %u entries "
                    "like its domain, found %u",
                    u->n, n_box);
        return false;
    }
    u->domain = domain;
    u->box = box;
    u->scaled_dim = -1;
    return unit_options(b, e, u);
}

/* Multiplies the box on the axis that can be scaled. */
static bool unit_scale(Build *b, Loc loc, const UnitRef *ref, Unit *u)
{
    if (ref->scale == 1)
        return true;
    if (u->scaled_dim < 0) {
        build_error(b, loc, "unit",
                    "the unit %s cannot be scaled, found %lld "
                    "* %s",
                    ref->name, (long long)ref->scale, ref->name);
        return false;
    }
    UnitExtent *box =
        arena_memdup(ctx_arena(b->ctx), u->box, u->n * sizeof *box);
    if (ref->scale > 1 << 20) {
        build_error(b, loc, "unit",
                    "the unit is scaled by %lld, expected at "
                    "most %d",
                    (long long)ref->scale, 1 << 20);
        return false;
    }
    box[u->scaled_dim].num *= ref->scale;
    u->box = box;
    return true;
}

static const Unit *unit_make(Lib *lib, Loc loc, const Entry *e,
                             const UnitRef *ref)
{
    Build b;
    unsigned n;
    const Param *args;
    Arena *arena = arena_new();
    Unit *u = ARENA_NEW(ctx_arena(lib->ctx), Unit);
    bool ok = entry_open(&b, arena, lib, loc, e, ref->n_params, ref->params, &n,
                         &args) &&
              unit_read(&b, e->decl->value, u) && unit_scale(&b, loc, ref, u);
    if (ok) {
        Param *bare = ARENA_ARRAY(arena, Param, n);
        for (unsigned i = 0; i < n; i++) {
            bare[i] = args[i];
            bare[i].name = NULL;
        }
        u->ref = unitref_get(lib->ctx, ref->scale, e->name, n, bare);
    }
    arena_free(arena);
    return ok ? u : NULL;
}

const Unit *lib_unit(Lib *lib, Loc loc, const UnitRef *ref)
{
    const Unit *made = made_find(&lib->units, ref);
    if (made)
        return made;
    const Entry *e = lib_find(lib, AST_unit, ref->name);
    if (!e) {
        Diag *d = diag_error(
            lib->ctx, loc, "unit", "%s",
            lib_unknown_text(lib->ctx, "collective unit", ref->name));
        lib_fix_name(lib, d, AST_unit, ref->name,
                     "define it: unit NAME = CollUnit(domain, box)");
        return NULL;
    }
    made = unit_make(lib, loc, e, ref);
    if (made)
        made_add(lib, &lib->units, ref, made);
    return made;
}
