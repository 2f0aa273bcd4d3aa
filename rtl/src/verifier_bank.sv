// Memory of one page's size: one write port, one read port, ROWS words of WORD_BITS bits.
//
// Written for inference as block RAM (simple dual port). A row is never read and written at the
// same time; verifier_unit sees to that.
//
//   write, write_row, write_word   writes at the clock edge
//   read, read_row                 reads at the clock edge into read_word, which holds until the
//                                  next read
//
// Latency: one cycle.
module verifier_bank #(
    parameter int WORD_BITS = 32,
    parameter int ROWS      = 1024,
    parameter int ROW_W     = ROWS > 1 ? $clog2(ROWS) : 1
) (
    input  logic                 clk,
    input  logic                 write,
    input  logic [ROW_W-1:0]     write_row,
    input  logic [WORD_BITS-1:0] write_word,
    input  logic                 read,
    input  logic [ROW_W-1:0]     read_row,
    output logic [WORD_BITS-1:0] read_word
);

  logic [WORD_BITS-1:0] memory[ROWS];

  always_ff @(posedge clk) begin
    if (write) memory[write_row] <= write_word;
    if (read) read_word <= memory[read_row];
  end

endmodule
