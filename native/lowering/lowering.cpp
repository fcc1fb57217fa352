// All rewrites of lowering in one call, for batches and single images. See variegate/program/lowering.
#include "lowering.h"

namespace vg::VG_LEVEL {
namespace {

// Reads the instructions of a program from records: opcode, flags, height, width, label, fill color (3) and arguments.
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

// Clears the outputs of lowering, and slots after the last instruction.
void clear_rest(const Rewritten &program) {
  const i64 used = max_of<i64>(1, program.length());  // a program without instructions has one pass
  for (i64 k = program.length(); k < program.all->slots; k++) program.opcode(k) = Op::NOP;
  memset(program.pass(0), 0, used * PASS_FIELDS * sizeof(i32));
  memset(program.window(0), 0, used * 4 * sizeof(i32));
}

// True for an opcode whose declarations in Python and here agree. Without branches, as survey(), because opcodes are
// random and branches would be mispredicted.
VG_INLINE bool is_known(const Lowering *all, int op) {
  const bool is_opcode = (u32)op < (u32)MAX_OPCODE;
  const int known = is_opcode ? op : Op::NOP;
  return (op == Op::NOP) | (is_opcode & (KIND_OF[known] >= 0) & (all->kinds[known] == KIND_OF[known]));
}

// Resources that the instructions of a batch need.
struct Survey {
  bool has_unknown = false;
  i64 tables = 0, blurs = 0;
};

Survey survey(const Lowering *all) {
  Survey found;
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    for (i64 k = 0; k < program.length(); k++) {
      const int op = program.opcode(k);
      const bool is_declared = is_known(all, op);
      const int known = is_declared ? op : Op::NOP;
      found.has_unknown |= !is_declared;
      found.tables += IS_TABLE.at[known];
      found.blurs += IS_BLUR[known];
    }
  }
  return found;
}

// The index, row * slots + slot, of the first instruction with an unknown opcode.
i64 find_unknown(const Lowering *all) {
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    for (i64 k = 0; k < program.length(); k++)
      if (!is_known(all, program.opcode(k))) return program.at(k);
  }
  return -1;
}

}  // namespace

// Lowers the programs of `all`; see Lowering for the results. UNSUPPORTED for an unknown opcode: then nothing is
// changed.
VG_EXPORT i64 VG_ENTRY(vg_lower)(Lowering *all) {
  if (all->records) unpack_records({all, 0});
  const Survey found = survey(all);
  all->unknown = found.has_unknown ? find_unknown(all) : -1;
  if (found.has_unknown) return UNSUPPORTED;
  // One table per operation, and one per composed pair.
  all->num_luts = all->is_deep ? 0 : 2 * found.tables;
  if (all->num_luts > all->room_for_luts) return OK;
  all->longest = 1;
  for (i64 r = 0; r < all->rows; r++) {
    const Rewritten program = {all, r};
    clear_rest(program);
    remove_neutral(program);
    if (all->nearest) take_nearest(program);
    all->longest = max_of<i64>(all->longest, program.length());
  }
  all->num_kernel_values = found.blurs == 0 ? 0 : build_kernels(all, found.blurs);
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

}  // namespace vg::VG_LEVEL
