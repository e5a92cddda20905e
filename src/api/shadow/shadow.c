/* A libibverbs.so.1 to stand before the real one: the same symbols and versions, each of them a
 * jump to lib_mrc.so, or to the real library for what only that one has.
 *
 * For programs that look functions up in the library itself, which a preloaded library cannot
 * catch. The jumps know nothing of arguments, so that the list of symbols is all there is to
 * maintain. They go through one slot each, filled when the library is loaded.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>

void* mrc_private_real_symbol(const char* name, const char* version);

/* By this the real library is told apart from this one. */
const int mrc_shadow_libibverbs = 1;

#if defined(__x86_64__)
#define MRC_JUMP(slot) "endbr64\n jmp *" slot "(%rip)\n"
#elif defined(__aarch64__)
#define MRC_JUMP(slot) "hint #34\n adrp x16, " slot "\n ldr x16, [x16, #:lo12:" slot "]\n br x16\n"
#else
#error "the shadow libibverbs knows x86-64 and AArch64; build with -DMRC_SHADOW=OFF"
#endif

/* The compiler does not see the change of section, so it is taken back: a compiler that keeps the
 * order of the file would otherwise put the next slot among the code. */
#define MRC_TRAMPOLINE(symbol, slot)                         \
  __asm__(".pushsection .text\n .balign 16\n .globl " symbol \
          "\n"                                               \
          ".type " symbol ", %function\n" symbol             \
          ":\n" MRC_JUMP(slot) ".size " symbol ", .-" symbol "\n .popsection\n")

/* The jumps have names of their own, so that one function may appear in two versions. */
#define MRC_SYMBOL(name, version)                                    \
  __attribute__((visibility("hidden"), used)) void* mrc_slot_##name; \
  MRC_TRAMPOLINE("mrc_jump_" #name, "mrc_slot_" #name);              \
  __asm__(".symver mrc_jump_" #name ", " #name "@@" version "\n");
#define MRC_OLD_SYMBOL(name, version)                                    \
  __attribute__((visibility("hidden"), used)) void* mrc_slot_old_##name; \
  MRC_TRAMPOLINE("mrc_old_" #name, "mrc_slot_old_" #name);               \
  __asm__(".symver mrc_old_" #name ", " #name "@" version "\n");
/* Whoever is loaded after us, the real library included, uses our copy. */
#define MRC_DATA_SYMBOL(name, version) unsigned char name;
#include "symbols.inc"
#undef MRC_SYMBOL
#undef MRC_OLD_SYMBOL
#undef MRC_DATA_SYMBOL

struct entry {
  const char* name;
  const char* version;
  void** slot;
  int is_old;
};

static const struct entry entries[] = {
#define MRC_SYMBOL(name, version) {#name, version, &mrc_slot_##name, 0},
#define MRC_OLD_SYMBOL(name, version) {#name, version, &mrc_slot_old_##name, 1},
#define MRC_DATA_SYMBOL(name, version)
#include "symbols.inc"
#undef MRC_SYMBOL
#undef MRC_OLD_SYMBOL
#undef MRC_DATA_SYMBOL
};

/* Where neither library has the function. Only reached with objects of a real device, and without
 * the real library there are none. */
static void* absent(void) {
  errno = ENOSYS;
  return NULL;
}

__attribute__((constructor)) static void fill_slots(void) {
  void* ours = dlopen("lib_mrc.so.1", RTLD_LAZY | RTLD_NOLOAD);
  for (size_t i = 0; i < sizeof entries / sizeof entries[0]; ++i) {
    const struct entry* entry = &entries[i];
    void* found = NULL;
    if (ours != NULL && !entry->is_old) found = dlsym(ours, entry->name);
    if (found == NULL) found = mrc_private_real_symbol(entry->name, entry->version);
    *entry->slot = found != NULL ? found : (void*)absent;
  }
}
