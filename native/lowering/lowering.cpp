// All rewrites of lowering in one call, for batches and single images.
#include "lowering.h"

namespace vg {
namespace {

// The instructions of a program from records, each its opcode, flags, height, width, label, fill color (3) and
// arguments.
void unpack_records(const Rewritten &program) {
  for (i64 k = 0; k < program.length(); k++) {
    const i64 *record = program.all->records + k * INSTRUCTION_RECORD;
    program.opcode(k) = (i16)record[0];
    program.flags(k) = (i16)record[1];
    program.out_size(k)[0] = (i32)record[2];
    program.out_size(k)[1] = (i32)record[3];
    program.label(k) = (i16)record[4];
    for (int i = 0; i < 3; i++) program.fill(k)[i] = (u8)record[5 + i];
    memcpy(program.args(k), record + INSTRUCTION_RECORD - NUM_ARGS, NUM_ARGS * sizeof(f64));
  }
}

// Clears what lowering writes, and slots behind the last instruction.
void clear_rest(const Rewritten &program) {
  const i64 used = max_of<i64>(1, program.length());  // a program without instructions has a pass, too
  for (i64 k = program.length(); k < program.all->slots; k++) program.opcode(k) = Op::NOP;
  memset(program.pass(0), 0, used * PASS_FIELDS * sizeof(i32));
  memset(program.window(0), 0, used * 4 * sizeof(i32));
}

// Returns the place, row * slots + slot, of the first instruction whose opcode is not declared alike in Python and here;
// -1 if there is none. Counts the tables that the others may need: one each, and one for each pair.
i64 find_unknown(const Lowering *all, i64 &luts) {
  luts = 0;
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    for (i64 k = 0; k < program.length(); k++) {
      const int op = program.opcode(k);
      if (op == Op::NOP) continue;
      if (op < 0 || op >= MAX_OPCODE || KIND_OF[op] < 0 || all->kinds[op] != KIND_OF[op]) return program.at(k);
      if (is_table(op)) luts += 2;
    }
  }
  return -1;
}

}  // namespace

// Lowers the programs of `all`, which says more about the results. UNSUPPORTED for an unknown opcode: nothing is lowered.
VG_EXPORT i64 vg_lower(Lowering *all) {
  if (all->records) unpack_records({all, 0});
  all->unknown = find_unknown(all, all->num_luts);
  if (all->unknown >= 0) return UNSUPPORTED;
  if (all->num_luts > all->room_for_luts) return OK;
  all->longest = 1;
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    clear_rest(program);
    remove_neutral(program);
    all->longest = max_of<i64>(all->longest, program.length());
  }
  all->num_kernel_values = build_kernels(all);
  if (all->num_kernel_values < 0) return OUT_OF_MEMORY;
  if (all->num_kernel_values > all->kernel_values) return OK;
  LutTables tables(all->luts, all->lut_channels);
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    rewrite_maps(program);
    build_luts(program, tables);
    merge_maps(program);
    compose_luts(program, tables);
    assign_passes(program);
    describe_passes(program);
  }
  all->num_luts = tables.count;
  return OK;
}

}  // namespace vg
