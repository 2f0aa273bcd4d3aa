// Groups under way: how many pages each has, and which is its stream's last, in order.
//
// A group of PAGES pages that closed within its stream is known to have a successor once the next
// page is whole; only then does it leave here, because that page may still break off, which makes
// this group its stream's last. So every stream with a whole page ends with exactly one m_tlast.
//
//   whole, first, over, close, last_page   events of verifier_spread, at the handshake (`event_`)
//   valid, last_page_out, last_group       oldest group known; `pop` takes it
//
// DEPTH must hold all groups that have closed and not been taken: three for each unit (one read,
// one whose last word is held back, one in the chain).
// Latency: two cycles from the event to the output.
module verifier_groups #(
    parameter int PAGES  = 4,
    parameter int UNITS  = 2,
    parameter int PAGE_W = PAGES > 1 ? $clog2(PAGES) : 1
) (
    input  logic              clk,
    input  logic              rst,
    input  logic              event_valid,
    input  logic              whole,
    input  logic              first,
    input  logic              over,
    input  logic              close,
    input  logic [PAGE_W-1:0] last_page,
    output logic              valid,
    output logic [PAGE_W-1:0] last_page_out,
    output logic              last_group,
    input  logic              pop
);

  localparam int DEPTH_W = $clog2(3 * UNITS + 1);
  localparam int DEPTH = 1 << DEPTH_W;

  // The group that closed last, until it is known to be its stream's last or not.
  logic pending, known, pending_last;
  logic [PAGE_W-1:0] pending_page;
  logic settled, settled_last;  // it is known now

  assign settled = pending && (known || (event_valid && first && (whole || over)));
  assign settled_last = known ? pending_last : !whole;

  always_ff @(posedge clk) begin
    if (rst) begin
      pending <= 1'b0;
    end else if (event_valid && close) begin
      pending <= 1'b1;
      known <= over;
      pending_last <= over;
      pending_page <= last_page;
    end else if (settled) begin
      pending <= 1'b0;
    end
  end

  logic [PAGE_W:0] queue[DEPTH];
  logic [DEPTH_W:0] pushed, popped;

  always_ff @(posedge clk) begin
    if (settled) queue[pushed[DEPTH_W-1:0]] <= {settled_last, pending_page};
    if (rst) begin
      pushed <= '0;
      popped <= '0;
    end else begin
      if (settled) pushed <= pushed + 1'b1;
      if (pop) popped <= popped + 1'b1;
    end
  end

  assign valid = pushed != popped;
  assign {last_group, last_page_out} = queue[popped[DEPTH_W-1:0]];

endmodule
