// Operations, selections, error groups and audit records in the API's words.
#pragma once

#include "base/json_writer.h"
#include "broker/browse.h"
#include "engine/commands.h"
#include "model/operation.h"
#include "server/response.h"

namespace reprise::server {

void write_operation(JsonWriter& out, const Operation& operation);

// Of jobs that were named: 200 when any was done or none was named, else the first refusal's
// status.
Response selection_response(OperationKind kind, const SelectionReply& reply);
// Of jobs that a filter selected: 200 when it has ended, 202 while it runs.
Response operation_started_response(const Operation& operation);
Response preview_response(OperationKind kind, const SelectionPreview& preview);
Response error_groups_response(const ErrorGroups& groups);
Response audit_response(const AuditPage& page);

}  // namespace reprise::server
