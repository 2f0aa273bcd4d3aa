// Spreads beats over the banks of a unit, and divides a stream into groups of PAGES pages.
//
// Word w of page p goes to bank (w + p) mod PAGES, row w. So the WORDS words of a beat go to
// different banks, and so do the words w of all pages: a unit takes a beat a cycle, and reads one
// word of every page a cycle, from banks that each hold no more than a page. The words of a beat
// are rotated by the beat's first bank, which makes slots; bank j then takes slot j mod WORDS, or,
// where the run of banks wraps round PAGES, slot (j + PAGES) mod WORDS.
//
// Groups go to the units in turn. A group closes with its PAGES-th page, or with the last whole
// page of its stream. A page that breaks off is forgotten; if it is the first of its group, the
// next stream's first page takes its place.
//
//   in_*          beats of verifier_gather
//   valid, ready  handshake of the beat below; `ready` comes from the unit that `unit` names
//   beat          number of the beat in its page
//   bank_write    banks that take a word; bank_word, bank_index (row in the beat) of each
//   whole         with this beat a page is whole; first: it is the first of its group
//   over          with this beat the stream is over
//   close         with this beat the group closes; last_page is the index of its last whole page
//
// Latency: one cycle. Throughput: one beat a cycle.
module verifier_spread #(
    parameter int PAGES     = 4,
    parameter int UNITS     = 2,
    parameter int WORD_BITS = 128,
    parameter int WORDS     = 4,
    parameter int PAGE_BITS = 32768,
    parameter int BEATS     = PAGE_BITS / (WORD_BITS * WORDS),
    parameter int BEAT_W    = BEATS > 1 ? $clog2(BEATS) : 1,
    parameter int INDEX_W   = WORDS > 1 ? $clog2(WORDS) : 1,
    parameter int PAGE_W    = PAGES > 1 ? $clog2(PAGES) : 1,
    parameter int UNIT_W    = UNITS > 1 ? $clog2(UNITS) : 1
) (
    input  logic                       clk,
    input  logic                       rst,
    input  logic                       in_valid,
    output logic                       in_ready,
    input  logic [WORDS*WORD_BITS-1:0] in_data,
    input  logic                       in_page_end,
    input  logic                       in_stream_end,
    input  logic                       in_broken,
    output logic                       valid,
    input  logic                       ready,
    output logic [UNIT_W-1:0]          unit,
    output logic [BEAT_W-1:0]          beat,
    output logic [PAGES-1:0]           bank_write,
    output logic [PAGES*WORD_BITS-1:0] bank_word,
    output logic [PAGES*INDEX_W-1:0]   bank_index,
    output logic                       whole,
    output logic                       first,
    output logic                       over,
    output logic                       close,
    output logic [PAGE_W-1:0]          last_page
);

  localparam int BEAT_BITS = WORDS * WORD_BITS;

  // Place of the beat at the input.
  logic [UNIT_W-1:0] next_unit;
  logic [PAGE_W-1:0] page;  // in its group
  logic [BEAT_W-1:0] next_beat;
  logic [PAGE_W-1:0] bank;  // of its first word
  logic take, group_full, closes;

  assign in_ready = !valid || ready;
  assign take = in_valid && in_ready;
  assign group_full = page == PAGE_W'(PAGES - 1);
  assign closes = in_broken ? page != '0 : in_page_end && (group_full || in_stream_end);

  // (bank + WORDS) mod PAGES; WORDS is at most PAGES.
  logic [PAGE_W:0] bank_sum;
  logic [PAGE_W-1:0] bank_on;
  assign bank_sum = {1'b0, bank} + (PAGE_W + 1)'(WORDS);
  assign bank_on  = PAGE_W'(bank_sum >= (PAGE_W + 1)'(PAGES) ? bank_sum - (PAGE_W + 1)'(PAGES)
                                                             : bank_sum);

  always_ff @(posedge clk) begin
    if (rst) begin
      next_unit <= '0;
      page <= '0;
      next_beat <= '0;
      bank <= '0;
    end else if (take) begin
      if (in_broken || in_stream_end || (in_page_end && group_full)) begin
        page <= '0;
        bank <= '0;
        next_beat <= '0;
      end else if (in_page_end) begin
        page <= page + 1'b1;
        bank <= page + 1'b1;  // word 0 of page p is in bank p
        next_beat <= '0;
      end else begin
        bank <= bank_on;
        next_beat <= next_beat + 1'b1;
      end
      if (closes) next_unit <= next_unit == UNIT_W'(UNITS - 1) ? '0 : next_unit + 1'b1;
    end
  end

  // Rotation: slot i holds word (i - bank) mod WORDS. Bit k of `bank` turns by 2^k words.
  logic [BEAT_BITS-1:0] turned[INDEX_W+1]  /*verilator split_var*/;
  assign turned[0] = in_data;
  for (genvar k = 0; k < INDEX_W; k++) begin : gen_turn
    localparam int BY = (WORD_BITS << k) % BEAT_BITS;
    if (BY == 0) begin : gen_none
      assign turned[k+1] = turned[k];
    end else begin : gen_turned
      assign turned[k+1] =
          bank[k] ? {turned[k][BEAT_BITS-BY-1:0], turned[k][BEAT_BITS-1-:BY]} : turned[k];
    end
  end

  logic [BEAT_BITS-1:0] slots;
  logic [PAGE_W-1:0] start;  // bank of the first word
  logic broken;
  always_ff @(posedge clk) begin
    if (rst) valid <= 1'b0;
    else if (in_ready) valid <= in_valid;
    if (take) begin
      unit <= next_unit;
      beat <= next_beat;
      slots <= turned[INDEX_W];
      start <= bank;
      broken <= in_broken;
      whole <= in_page_end && !in_broken;
      first <= page == '0;
      over <= in_broken || in_stream_end;
      close <= closes;
      last_page <= in_broken ? page - 1'b1 : page;
    end
  end

  logic [PAGE_W:0] wide_start;
  assign wide_start = {1'b0, start};
  for (genvar j = 0; j < PAGES; j++) begin : gen_bank
    localparam int SLOT = j % WORDS;
    localparam int WRAPPED = (j + PAGES) % WORDS;
    logic in_run, wraps;
    assign in_run = wide_start <= (PAGE_W + 1)'(j) &&
        (PAGE_W + 1)'(j) - wide_start < (PAGE_W + 1)'(WORDS);
    assign bank_write[j] = (in_run || wraps) && !broken;
    // Only the first WORDS - 1 banks can be reached round the end.
    if (j + 1 < WORDS && SLOT != WRAPPED) begin : gen_either
      assign wraps = wide_start > (PAGE_W + 1)'(PAGES + j - WORDS);
      assign bank_word[j*WORD_BITS+:WORD_BITS] =
          slots[(wraps?WRAPPED : SLOT)*WORD_BITS+:WORD_BITS];
      assign bank_index[j*INDEX_W+:INDEX_W] =
          INDEX_W'(wraps ? WRAPPED : SLOT) - INDEX_W'(start);
    end else begin : gen_one
      if (j + 1 < WORDS) begin : gen_wraps
        assign wraps = wide_start > (PAGE_W + 1)'(PAGES + j - WORDS);
      end else begin : gen_never
        assign wraps = 1'b0;
      end
      assign bank_word[j*WORD_BITS+:WORD_BITS] = slots[SLOT*WORD_BITS+:WORD_BITS];
      assign bank_index[j*INDEX_W+:INDEX_W] = INDEX_W'(SLOT) - INDEX_W'(start);
    end
  end

endmodule
