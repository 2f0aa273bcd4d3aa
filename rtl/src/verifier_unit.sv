// A unit: checks PAGES adjacent pages together, LANE_BITS of each in a cycle.
//
// A ring of PAGES lanes, each a bank and a CRC-32C step. Row w of bank j holds word w of page
// (j - w) mod PAGES (verifier_spread puts it there). Lanes read row after row in step; with each
// row the checksums move on by one lane, so that every checksum meets its page's next word without
// a multiplexer between banks and steps.
//
// A group is read once it has closed. Rows that were read take the next group's first page
// meanwhile, and checksums wait in a chain of their own, so a unit with one page takes beats
// nearly all the time, and a waiting output stops no unit before its second group is done.
//
//   write, beat, bank_*      beat to write; only with `may_write`
//   close                    with `write`: the group is whole, begin to read
//   result_valid, result     checksum of the group's next page, in the order of pages
//   result_next, result_last takes that checksum; the last one of the group frees the chain
//
// Latency: from close to the first checksum PAGE_BITS / LANE_BITS + 2 cycles.
// Throughput: PAGES pages in PAGE_BITS / LANE_BITS cycles, or in the cycles that their beats take
// to arrive, less the first page's if that is read over.
module verifier_unit #(
    parameter int PAGES     = 4,
    parameter int LANE_BITS = 64,
    parameter int WORD_BITS = 128,
    parameter int WORDS     = 4,
    parameter int PAGE_BITS = 32768,
    parameter int BEATS     = PAGE_BITS / (WORD_BITS * WORDS),
    parameter int BEAT_W    = BEATS > 1 ? $clog2(BEATS) : 1,
    parameter int INDEX_W   = WORDS > 1 ? $clog2(WORDS) : 1
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       write,
    input  logic [BEAT_W-1:0]          beat,
    input  logic [PAGES-1:0]           bank_write,
    input  logic [PAGES*WORD_BITS-1:0] bank_word,
    // One word a beat has no index.
    // verilator lint_off UNUSEDSIGNAL
    input  logic [PAGES*INDEX_W-1:0]   bank_index,
    // verilator lint_on UNUSEDSIGNAL
    input  logic                       close,
    output logic                       may_write,
    output logic                       result_valid,
    output logic [31:0]                result,
    input  logic                       result_next,
    input  logic                       result_last
);

  localparam int ROWS = PAGE_BITS / WORD_BITS;
  localparam int ROW_W = ROWS > 1 ? $clog2(ROWS) : 1;
  localparam int STEPS = WORD_BITS / LANE_BITS;  // of a word
  localparam int STEP_W = STEPS > 1 ? $clog2(STEPS) : 1;

  // Reading: `row` is the next row to read while `reading`; `held` says that the banks hold a word.
  logic reading, held, held_last;
  logic [ROW_W-1:0] row;
  logic [STEP_W-1:0] step;
  logic word_end, group_end, advance, fetch;

  assign word_end = step == STEP_W'(STEPS - 1);
  assign group_end = held_last && word_end;
  // The last step waits until the chain is free, or about to be.
  assign advance = held && !(group_end && result_valid && !(result_next && result_last));
  assign fetch = reading && (!held || (advance && word_end));

  // All rows of the beat have been read, or none is to be.
  assign may_write = !reading || beat < BEAT_W'(32'(row) / WORDS);

  always_ff @(posedge clk) begin
    if (rst) begin
      reading <= 1'b0;
      row <= '0;
      held <= 1'b0;
      held_last <= 1'b0;
      step <= '0;
    end else begin
      if (fetch) begin
        held <= 1'b1;
        held_last <= row == ROW_W'(ROWS - 1);
        row <= row == ROW_W'(ROWS - 1) ? '0 : row + 1'b1;
      end else if (advance && word_end) begin
        held <= 1'b0;
      end
      if (advance) step <= word_end ? '0 : step + 1'b1;
      if (write && close) reading <= 1'b1;
      else if (fetch && row == ROW_W'(ROWS - 1)) reading <= 1'b0;
    end
  end

  // Lanes.
  logic [31:0] state[PAGES];
  logic [31:0] next[PAGES];
  for (genvar j = 0; j < PAGES; j++) begin : gen_lane
    localparam int BEFORE = (j + PAGES - 1) % PAGES;
    logic [WORD_BITS-1:0] word;
    logic [LANE_BITS-1:0] part;
    logic [ROW_W-1:0] write_row;

    if (WORDS > 1) begin : gen_index
      assign write_row = ROW_W'({beat, bank_index[j*INDEX_W+:INDEX_W]});
    end else begin : gen_beat
      assign write_row = ROW_W'(beat);
    end

    verifier_bank #(
        .WORD_BITS(WORD_BITS),
        .ROWS     (ROWS)
    ) bank (
        .clk,
        .write     (write && bank_write[j]),
        .write_row,
        .write_word(bank_word[j*WORD_BITS+:WORD_BITS]),
        .read      (fetch),
        .read_row  (row),
        .read_word (word)
    );

    if (STEPS > 1) begin : gen_part
      assign part = word[step*LANE_BITS+:LANE_BITS];
    end else begin : gen_word
      assign part = word;
    end

    crc32c_step #(
        .BITS(LANE_BITS)
    ) crc (
        .state(state[j]),
        .data (part),
        .next (next[j])
    );

    always_ff @(posedge clk) begin
      if (rst || (advance && group_end)) state[j] <= '1;
      else if (advance) state[j] <= word_end ? next[BEFORE] : next[j];
    end
  end

  // Chain of checksums. Page p ends in lane (p + ROWS - 1) mod PAGES.
  logic [31:0] chain[PAGES];
  for (genvar p = 0; p < PAGES; p++) begin : gen_chain
    localparam int LANE = (p + ROWS - 1) % PAGES;
    localparam int BEHIND = p + 1 < PAGES ? p + 1 : p;
    always_ff @(posedge clk) begin
      if (advance && group_end) chain[p] <= ~next[LANE];
      else if (result_next) chain[p] <= chain[BEHIND];
    end
  end
  assign result = chain[0];

  always_ff @(posedge clk) begin
    if (rst) result_valid <= 1'b0;
    else if (advance && group_end) result_valid <= 1'b1;
    else if (result_next && result_last) result_valid <= 1'b0;
  end

endmodule
