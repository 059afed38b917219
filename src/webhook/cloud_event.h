// The CloudEvent that tells a death: structured JSON, version 1.0, the envelope as its data.
#pragma once

#include <string>

#include "model/webhook.h"

namespace reprise::webhook {

inline constexpr char kCloudEventContentType[] = "application/cloudevents+json";

// The same death gives the same bytes each time, its id above all.
std::string cloud_event(const PendingWebhook& death);

}  // namespace reprise::webhook
