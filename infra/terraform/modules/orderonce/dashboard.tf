# Four rows, four questions: are we charging, once, and fast, and are the events published?
# One row more for orders by HTTP and for receipts, if they are created.
locals {
  # One line per value of a dimension. SEARCH is allowed in graphs only.
  searches = { for metric, by in {
    Settled     = { dimension = "Status", stat = "Sum" }, Parked = { dimension = "Reason", stat = "Sum" },
    Redelivered = { dimension = "Reason", stat = "Sum" }, CallLatency = { dimension = "Call", stat = "p99" },
    Unpublished = { dimension = "Reason", stat = "Sum" },
    Refunds     = { dimension = "Reason", stat = "Sum", function = true },
    Intake      = { dimension = "Result", stat = "Sum" },
    Receipts    = { dimension = "Result", stat = "Sum", function = true },
    } : metric => {
    label = "$${PROP('Dim.${by.dimension}')}"
    expression = format(
      "SEARCH('{orderonce,%sScope,%s} Scope=\"%s\" MetricName=\"%s\"', '%s', 300)",
      try(by.function, false) ? "Function," : "", by.dimension, local.scope, metric, by.stat,
    )
  } }

  # How many messages a queue has, at the right axis.
  queued = { for name, queue in local.queue_names : name => [
    "AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", queue, { yAxis = "right" },
  ] }

  function_charts = { for name in ["publish", "refund", "intake", "receipt"] : name => {
    title = "${title(name)}: duration p99 (milliseconds), errors, throttles", stat = "Sum", metrics = [
      ["AWS/Lambda", "Duration", "FunctionName", "${local.prefix}-${name}", { stat = "p99" }],
      ["AWS/Lambda", "Errors", "FunctionName", "${local.prefix}-${name}", { yAxis = "right" }],
      ["AWS/Lambda", "Throttles", "FunctionName", "${local.prefix}-${name}", { yAxis = "right" }],
    ]
  } }

  # The properties of a widget: title, statistic, and metrics as [namespace, name,
  # dimension, value, ...] or [{expression, ...}].
  dashboard = concat([
    { question = "Are we charging?", widgets = [
      { title = "Settled orders, by status", stat = "Sum", metrics = [[local.searches.Settled]] },
      { title = "Waiting orders: age of the oldest (seconds) and number", stat = "Maximum", metrics = [
        # SQS excludes messages that were received three times or more from its metric.
        # The function's WaitingAge includes them.
        [
          "AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", local.queue_names["orders"],
          { label = "received at most twice" },
        ],
        ["orderonce", "WaitingAge", "Scope", local.scope, { id = "retried", visible = false }],
        [{ expression = "retried / 1000", label = "retried" }],
        local.queued["orders"],
      ] },
      { title = "Parked orders, by reason, and dead letters", stat = "Sum", metrics = [
        [local.searches.Parked],
        [
          "AWS/SQS", "ApproximateNumberOfMessagesVisible", "QueueName", local.queue_names["orders-dead"],
          { stat = "Maximum", yAxis = "right" },
        ],
      ] },
    ] },
    { question = "Once?", widgets = [
      { title = "Deliveries and duplicates", stat = "Sum", metrics = [
        ["orderonce", "Received", "Scope", local.scope],
        ["orderonce", "Duplicates", "Scope", local.scope],
      ] },
      { title = "Concurrent attempts and unknown outcomes", stat = "Sum", metrics = [
        ["orderonce", "InProgress", "Scope", local.scope],
        ["orderonce", "Takeovers", "Scope", local.scope],
        ["orderonce", "ClaimsLost", "Scope", local.scope],
        ["orderonce", "Unknown", "Scope", local.scope],
      ] },
      { title = "Redelivered, by reason", stat = "Sum", metrics = [[local.searches.Redelivered]] },
    ] },
    { question = "Fast?", widgets = [
      { title = "Time from sent to settled (milliseconds)", stat = "p50", metrics = [
        ["orderonce", "OrderAge", "Scope", local.scope, { label = "p50" }],
        ["orderonce", "OrderAge", "Scope", local.scope, { label = "p99", stat = "p99" }],
      ] },
      { title = "Call latency p99 (milliseconds)", stat = "p99", metrics = [[local.searches.CallLatency]] },
      { title = "Function: duration p99 (milliseconds), concurrency, errors", stat = "Maximum", metrics = [
        ["AWS/Lambda", "Duration", "FunctionName", "${local.prefix}-order", { stat = "p99" }],
        ["AWS/Lambda", "ConcurrentExecutions", "FunctionName", "${local.prefix}-order", { yAxis = "right" }],
        ["AWS/Lambda", "Errors", "FunctionName", "${local.prefix}-order", { stat = "Sum", yAxis = "right" }],
      ] },
    ] },
    { question = "Published?", widgets = [
      { title = "Published events, and attempts that failed, by reason", stat = "Sum", metrics = [
        ["orderonce", "Published", "Scope", local.scope],
        [local.searches.Unpublished],
      ] },
      { title = "Age of the newest event of a batch (milliseconds) and given up", stat = "Maximum", metrics = [
        ["AWS/Lambda", "IteratorAge", "FunctionName", "${local.prefix}-publish"],
        local.queued["unpublished"],
      ] },
      local.function_charts.publish,
    ] },
    ], [for part in [local.refund] : { question = "Refunded?", widgets = [
      { title = "Refunds, by reason", stat = "Sum", metrics = [[local.searches.Refunds]] },
      { title = "Waiting refunds: age of the oldest (seconds), and dead letters", stat = "Maximum", metrics = [
        ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", local.queue_names["refunds"]],
        local.queued["refunds-dead"],
      ] },
      local.function_charts.refund,
      ] } if part.enabled], [for api in aws_apigatewayv2_api.orders : { question = "Accepted by HTTP?", widgets = [
      { title = "Requests, by result", stat = "Sum", metrics = [[local.searches.Intake]] },
      { title = "API: requests, 4xx and 5xx", stat = "Sum", metrics = [
        ["AWS/ApiGateway", "Count", "ApiId", api.id],
        ["AWS/ApiGateway", "4xx", "ApiId", api.id],
        ["AWS/ApiGateway", "5xx", "ApiId", api.id],
      ] },
      local.function_charts.intake,
      ] }], [for part in [local.receipt] : { question = "Receipts?", widgets = [
      { title = "Receipts, by result", stat = "Sum", metrics = [[local.searches.Receipts]] },
      { title = "Waiting events: age of the oldest (seconds), and dead letters", stat = "Maximum", metrics = [
        ["AWS/SQS", "ApproximateAgeOfOldestMessage", "QueueName", local.queue_names["receipts"]],
        local.queued["receipts-dead"],
      ] },
      local.function_charts.receipt,
  ] } if part.enabled])
}

resource "aws_cloudwatch_dashboard" "orders" {
  count = var.create_dashboard ? 1 : 0

  dashboard_name = local.prefix
  dashboard_body = jsonencode({
    widgets = flatten([for row, line in local.dashboard : concat(
      [{
        type = "text", x = 0, y = row * 7, width = 24, height = 1, properties = {
          markdown = "## ${line.question}"
        }
      }],
      [for column, widget in line.widgets : {
        type = "metric", x = column * 8, y = row * 7 + 1, width = 8, height = 6, properties = merge(widget, {
          view = "timeSeries", period = 300, region = data.aws_region.current.region
        })
      }],
    )])
  })
}
