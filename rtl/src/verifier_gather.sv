// Gathers beats of the bus into beats of OUT_BITS bits, and finds the ends of pages and streams.
//
// OUT_BITS is BUS_BITS, or a multiple of it where one step of a unit takes more than a beat. A
// `s_tlast` before the last beat of a page breaks the stream off: an output beat with `out_broken`
// follows at once, whose data mean nothing, and `error` is high until reset. The beat after it
// begins a new stream.
//
//   s_*              AXI4-Stream sink; one beat a cycle unless the output waits
//   out_data         OUT_BITS bits, first byte lowest
//   out_page_end     last beat of a whole page
//   out_stream_end   last beat of a stream, and of a whole page
//   out_broken       the page that began is no page: its stream ended within it
//
// Latency: one cycle from the last bus beat to the output.
module verifier_gather #(
    parameter int BUS_BITS  = 512,
    parameter int OUT_BITS  = 512,
    parameter int PAGE_BITS = 32768
) (
    input  logic                clk,
    input  logic                rst,
    input  logic [BUS_BITS-1:0] s_tdata,
    input  logic                s_tvalid,
    output logic                s_tready,
    input  logic                s_tlast,
    output logic                out_valid,
    input  logic                out_ready,
    output logic [OUT_BITS-1:0] out_data,
    output logic                out_page_end,
    output logic                out_stream_end,
    output logic                out_broken,
    output logic                error
);

  localparam int BEATS = PAGE_BITS / BUS_BITS;
  localparam int BEAT_W = BEATS > 1 ? $clog2(BEATS) : 1;
  localparam int PIECES = OUT_BITS / BUS_BITS;

  logic [BEAT_W-1:0] beat;  // beats of this page that were taken
  logic take, page_end, broken, full;

  assign s_tready = !rst && (!out_valid || out_ready);
  assign take = s_tvalid && s_tready;
  assign page_end = beat == BEAT_W'(BEATS - 1);
  assign broken = s_tlast && !page_end;
  // PIECES is a power of two: the low bits of `beat` number the piece.
  assign full = (beat & BEAT_W'(PIECES - 1)) == BEAT_W'(PIECES - 1);

  always_ff @(posedge clk) begin
    if (rst) begin
      out_valid <= 1'b0;
      beat <= '0;
      error <= 1'b0;
    end else if (take) begin
      out_valid <= full || broken;
      beat <= page_end || broken ? '0 : beat + 1'b1;
      error <= error || broken;
    end else if (out_ready) begin
      out_valid <= 1'b0;
    end
  end

  always_ff @(posedge clk) begin
    if (take) begin
      out_page_end   <= page_end;
      out_stream_end <= page_end && s_tlast;
      out_broken     <= broken;
    end
  end

  if (PIECES > 1) begin : gen_shift
    always_ff @(posedge clk) if (take) out_data <= {s_tdata, out_data[OUT_BITS-1:BUS_BITS]};
  end else begin : gen_beat
    always_ff @(posedge clk) if (take) out_data <= s_tdata;
  end

endmodule
