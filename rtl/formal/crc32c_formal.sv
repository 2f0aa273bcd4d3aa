// Proof: a step of BITS bits is BITS steps of one bit, from the definition (RFC 3720, B.4).
module crc32c_formal #(
    parameter int BITS = 8
) (
    input logic [31:0]     state,
    input logic [BITS-1:0] data
);

  logic [31:0] next, slow;

  crc32c_step #(
      .BITS(BITS)
  ) step (
      .state,
      .data,
      .next
  );

  always_comb begin
    slow = state;
    for (int k = 0; k < BITS; k++) begin
      slow = (slow >> 1) ^ (slow[0] ^ data[k] ? 32'h82F6_3B78 : 32'h0);
    end
    assert (next == slow);
  end

endmodule
