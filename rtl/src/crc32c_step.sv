// One step of CRC-32C: advances the checksums' 32-bit state by BITS bits of data.
//
// Polynomial 1EDC6F41h (Castagnoli, RFC 3720), reflected: bit 0 of `data` is the first bit of the
// stream, and bit 0 of the first byte. The state of an empty stream is FFFFFFFFh; the checksum is
// the inverted state.
//
// The step is linear, so every bit k of the input adds its own constant to the result: `column(k)`,
// the remainder of one bit that BITS - 1 - k more bits follow. A balanced tree adds them. Steps
// longer than BLOCK bits are blocks one after another.
//
//   state  32 bits, before the step
//   data   BITS bits
//   next   32 bits, after the step
//
// Latency: none (combinational).
module crc32c_step #(
    parameter int BITS = 8
) (
    input  logic [31:0]     state,
    input  logic [BITS-1:0] data,
    output logic [31:0]     next
);

  localparam logic [31:0] POLYNOMIAL = 32'h82F6_3B78;  // 1EDC6F41h, bits reversed
  localparam int BLOCK = BITS < 256 ? BITS : 256;
  localparam int BLOCKS = BITS / BLOCK;

  // Columns of all bits of a block: column k in bits 32 k + 31 : 32 k.
  function automatic logic [32*BLOCK-1:0] columns(input logic [31:0] last);
    logic [31:0] column;
    column  = last;
    columns = '0;
    for (int k = BLOCK - 1; k >= 0; k--) begin
      columns[32*k+:32] = column;
      column = (column >> 1) ^ (column[0] ? last : 32'h0);
    end
  endfunction

  localparam logic [32*BLOCK-1:0] COLUMNS = columns(POLYNOMIAL);

  logic [31:0] link[BLOCKS+1]  /*verilator split_var*/;
  assign link[0] = state;
  assign next = link[BLOCKS];

  for (genvar b = 0; b < BLOCKS; b++) begin : gen_block
    // A tree numbered as a heap: node n adds nodes 2n and 2n + 1; leaf k is node BLOCK + k.
    logic [31:0] node[2*BLOCK]  /*verilator split_var*/;
    for (genvar k = 0; k < BLOCK; k++) begin : gen_leaf
      logic bit_in;
      if (k < 32) begin : gen_with_state
        assign bit_in = data[b*BLOCK+k] ^ link[b][k];
      end else begin : gen_data
        assign bit_in = data[b*BLOCK+k];
      end
      assign node[BLOCK+k] = bit_in ? COLUMNS[32*k+:32] : 32'h0;
    end
    for (genvar n = 1; n < BLOCK; n++) begin : gen_sum
      assign node[n] = node[2*n] ^ node[2*n+1];
    end
    assign node[0] = 32'h0;  // a heap starts at 1
    // State bits that no bit of data has met only move.
    assign link[b+1] = node[1] ^ (BLOCK < 32 ? link[b] >> BLOCK : 32'h0);
  end

endmodule
