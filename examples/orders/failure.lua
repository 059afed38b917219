-- What becomes of an order that failed: some errors no retry can mend, the rest gets a few more
-- chances, with growing pauses.
function on_failure(msg)
  if msg.error:find("no such customer", 1, true) then
    return { action = "dlq", reason = "no such customer" }
  end
  if msg.failures >= 5 then
    return { action = "dlq", reason = "given up after " .. msg.failures .. " failures" }
  end
  return { action = "retry", delay_ms = backoff(msg.failures, 1000, 60000, 0.2) }
end
