rtl/src/crc32c_step.sv
rtl/src/verifier_bank.sv
rtl/src/verifier_gather.sv
rtl/src/verifier_spread.sv
rtl/src/verifier_unit.sv
rtl/src/verifier_groups.sv
rtl/src/verifier_collect.sv
rtl/src/verifier.sv
