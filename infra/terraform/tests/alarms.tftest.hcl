mock_provider "aws" {
  source = "./tests/mocks"
}

variables {
  create_intake             = true
  create_receipts           = true
  receipt_from              = "receipts@shop.invalid"
  receipt_configuration_set = "shop-receipts"
  stock_tracking            = true
  create_example_subscriber = true
}

# Threshold, how many of how many periods, the expression if there is one, and each metric by id.
# A single occurrence of what needs a person has the threshold 0. The dimension Scope is below.
run "each_alarm_reads_these_metrics_with_this_threshold" {
  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => concat(
      [join(" ", [
        alarm.comparison_operator == "LessThanThreshold" ? "<" : ">", alarm.threshold,
        "in", alarm.datapoints_to_alarm, "of", alarm.evaluation_periods, "x",
        one(distinct(flatten([for query in alarm.metric_query : query.metric[*].period]))) / 60, "min",
      ])],
      compact([for query in alarm.metric_query : query.expression == null ? "" : query.expression]),
      sort(flatten([for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        ["${query.id}:"], metric.namespace == "orderonce" ? [] : [metric.namespace],
        [metric.metric_name, metric.stat],
        [for dimension, value in metric.dimensions : "${dimension}=${value}" if dimension != "Scope"],
      ))]])),
      ) }) == jsonencode({
      dead-letters = [
        "> 0 in 1 of 1 x 5 min",
        "m: AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-orders-dead",
      ]
      dead-letters-old = [
        "> 604800 in 1 of 1 x 5 min",
        "m: AWS/SQS ApproximateAgeOfOldestMessage Maximum QueueName=orderonce-dev-orders-dead",
      ]
      declines = [
        "> 30 in 2 of 3 x 5 min", "IF(settled >= 20, 100 * declined / settled, 0)",
        "declined: Settled Sum Status=declined", "settled: OrderAge SampleCount",
      ]
      dispute = ["> 0 in 1 of 1 x 5 min", "m: Disputed Sum"]
      duplicates = [
        "> 20 in 2 of 3 x 5 min", "IF(received >= 50, 100 * duplicates / received, 0)",
        "duplicates: Duplicates Sum", "received: Received Sum",
      ]
      duration = ["> 24000 in 3 of 5 x 5 min", "m: AWS/Lambda Duration p99 FunctionName=orderonce-dev-order"]
      errors   = ["> 0 in 2 of 3 x 5 min", "m: AWS/Lambda Errors Sum FunctionName=orderonce-dev-order"]
      events-unpublished = [
        "> 0 in 1 of 1 x 5 min",
        "m: AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-unpublished",
      ]
      events-unreadable = ["> 0 in 1 of 1 x 5 min", "m: Unpublished Sum Reason=unreadable"]
      intake-errors     = ["> 0 in 2 of 3 x 5 min", "m: AWS/Lambda Errors Sum FunctionName=orderonce-dev-intake"]
      intake-failing = [
        "> 25 in 2 of 3 x 5 min", "100 * errors / requests", "errors: AWS/ApiGateway 5xx Sum ApiId=orders",
        "requests: AWS/ApiGateway Count Sum ApiId=orders",
      ]
      intake-throttles = [
        "> 0 in 3 of 5 x 5 min", "m: AWS/Lambda Throttles Sum FunctionName=orderonce-dev-intake",
      ]
      key-reused       = ["> 0 in 1 of 1 x 5 min", "m: Parked Sum Reason=key_reused"]
      misconfigured    = ["> 0 in 1 of 1 x 5 min", "m: Redelivered Sum Reason=misconfigured"]
      mismatch         = ["> 0 in 1 of 1 x 5 min", "m: Parked Sum Reason=mismatch"]
      orders-open-long = ["> 600000 in 2 of 3 x 5 min", "m: OrderAge p99"]
      orders-retrying  = ["> 1800000 in 1 of 4 x 5 min", "m: WaitingAge Maximum"]
      orders-waiting = [
        "> 1800 in 2 of 3 x 5 min",
        "m: AWS/SQS ApproximateAgeOfOldestMessage Maximum QueueName=orderonce-dev-orders",
      ]
      orders-waiting-action-required = [
        "> 259200000 in 1 of 26 x 60 min", "m: OldestWaiting Maximum Status=action_required",
      ]
      orders-waiting-open    = ["> 3600000 in 1 of 26 x 60 min", "m: OldestWaiting Maximum Status=open"]
      orders-waiting-pending = ["> 1209600000 in 1 of 26 x 60 min", "m: OldestWaiting Maximum Status=pending"]
      orders-without-intent  = ["> 0 in 1 of 1 x 5 min", "m: Reconciled Sum Result=no_intent"]
      provider-unavailable = [
        "> 25 in 3 of 4 x 5 min", "100 * failed / received",
        "failed: Redelivered Sum Reason=provider_unavailable", "received: Received Sum",
      ]
      publish-behind = [
        "> 900000 in 2 of 3 x 5 min", "m: AWS/Lambda IteratorAge Maximum FunctionName=orderonce-dev-publish",
      ]
      publish-errors = [
        "> 0 in 2 of 3 x 5 min", "m: AWS/Lambda Errors Sum FunctionName=orderonce-dev-publish",
      ]
      publish-silent = [
        "> 0 in 1 of 1 x 60 min", "IF(FILL(published, 0) == 0, paid, 0)", "paid: Settled Sum Status=paid",
        "published: Published Sum",
      ]
      publish-throttles = [
        "> 0 in 3 of 5 x 5 min", "m: AWS/Lambda Throttles Sum FunctionName=orderonce-dev-publish",
      ]
      queue-dead-letter-retention = [
        "> 0 in 1 of 12 x 5 min", "m: QueueMisconfigured Sum Setting=dead_letter_retention",
      ]
      queue-max-receives   = ["> 0 in 1 of 12 x 5 min", "m: QueueMisconfigured Sum Setting=max_receives"]
      queue-redrive-target = ["> 0 in 1 of 12 x 5 min", "m: QueueMisconfigured Sum Setting=redrive_target"]
      queue-retention      = ["> 0 in 1 of 12 x 5 min", "m: QueueMisconfigured Sum Setting=retention"]
      receipt-errors = [
        "> 0 in 2 of 3 x 5 min", "m: AWS/Lambda Errors Sum FunctionName=orderonce-dev-receipt",
      ]
      receipt-queue-settings = [
        "> 0 in 1 of 12 x 5 min",
        "FILL(dead_letter_retention, 0) + FILL(max_receives, 0) + FILL(redrive_target, 0) + FILL(retention, 0)",
        "dead_letter_retention: QueueMisconfigured Sum Function=receipt Setting=dead_letter_retention",
        "max_receives: QueueMisconfigured Sum Function=receipt Setting=max_receives",
        "redrive_target: QueueMisconfigured Sum Function=receipt Setting=redrive_target",
        "retention: QueueMisconfigured Sum Function=receipt Setting=retention",
      ]
      receipt-throttles = [
        "> 0 in 3 of 5 x 5 min", "m: AWS/Lambda Throttles Sum FunctionName=orderonce-dev-receipt",
      ]
      receipts-bounced = [
        "> 5 in 1 of 2 x 60 min", "IF(sent >= 20, 100 * bounced / sent, 0)",
        "bounced: Receipts Sum Function=receipt Result=bounced",
        "sent: Receipts Sum Function=receipt Result=sent",
      ]
      receipts-dead-letters = [
        "> 0 in 1 of 1 x 5 min",
        "m: AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-receipts-dead",
      ]
      receipts-doubtful = ["> 0 in 1 of 1 x 5 min", "m: Receipts Sum Function=receipt Result=doubtful"]
      receipts-failed   = ["> 5 in 2 of 3 x 5 min", "m: Receipts Sum Function=receipt Result=failed"]
      receipts-retrying = ["> 1800000 in 1 of 4 x 5 min", "m: WaitingAge Maximum Function=receipt"]
      receipts-waiting = [
        "> 1800 in 2 of 3 x 5 min",
        "m: AWS/SQS ApproximateAgeOfOldestMessage Maximum QueueName=orderonce-dev-receipts",
      ]
      reconcile-behind = ["> 21600000 in 1 of 2 x 60 min", "m: Overdue Maximum"]
      reconcile-errors = [
        "> 0 in 2 of 12 x 5 min", "m: AWS/Lambda Errors Sum FunctionName=orderonce-dev-reconcile",
      ]
      reconcile-failing  = ["> 0 in 1 of 8 x 60 min", "m: Reconciled Sum Result=failed"]
      reconcile-mismatch = ["> 0 in 1 of 1 x 5 min", "m: Reconciled Sum Result=mismatch"]
      reconcile-missing = [
        "< 1 in 3 of 3 x 5 min", "m: AWS/Lambda Invocations Sum FunctionName=orderonce-dev-reconcile",
      ]
      refund-errors = [
        "> 0 in 2 of 3 x 5 min", "m: AWS/Lambda Errors Sum FunctionName=orderonce-dev-refund",
      ]
      refund-mismatch = [
        "> 0 in 1 of 4 x 5 min", "FILL(parked, 0) + FILL(returned, 0) + FILL(reused, 0)",
        "parked: Parked Sum Function=refund Reason=mismatch",
        "returned: Redelivered Sum Function=refund Reason=mismatch",
        "reused: Parked Sum Function=refund Reason=key_reused",
      ]
      refund-queue-settings = [
        "> 0 in 1 of 12 x 5 min",
        "FILL(dead_letter_retention, 0) + FILL(max_receives, 0) + FILL(redrive_target, 0) + FILL(retention, 0)",
        "dead_letter_retention: QueueMisconfigured Sum Function=refund Setting=dead_letter_retention",
        "max_receives: QueueMisconfigured Sum Function=refund Setting=max_receives",
        "redrive_target: QueueMisconfigured Sum Function=refund Setting=redrive_target",
        "retention: QueueMisconfigured Sum Function=refund Setting=retention",
      ]
      refund-throttles = [
        "> 0 in 3 of 5 x 5 min", "m: AWS/Lambda Throttles Sum FunctionName=orderonce-dev-refund",
      ]
      refund-unknown   = ["> 0 in 1 of 1 x 5 min", "m: Parked Sum Function=refund Reason=refund_unknown"]
      refunded-outside = ["> 0 in 1 of 1 x 5 min", "m: RefundedOutside Sum"]
      refunds-dead-letters = [
        "> 0 in 1 of 1 x 5 min",
        "m: AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-refunds-dead",
      ]
      refunds-retrying = ["> 1800000 in 1 of 4 x 5 min", "m: WaitingAge Maximum Function=refund"]
      refunds-waiting = [
        "> 1800 in 2 of 3 x 5 min",
        "m: AWS/SQS ApproximateAgeOfOldestMessage Maximum QueueName=orderonce-dev-refunds",
      ]
      store-unavailable = [
        "> 25 in 3 of 4 x 5 min", "100 * failed / received",
        "failed: Redelivered Sum Reason=store_unavailable", "received: Received Sum",
      ]
      subscriber-dead-letters = [
        "> 0 in 1 of 1 x 5 min",
        "m: AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-paid-dead",
      ]
      throttles        = ["> 0 in 3 of 5 x 5 min", "m: AWS/Lambda Throttles Sum FunctionName=orderonce-dev-order"]
      unknown-outcomes = ["> 5 in 2 of 3 x 5 min", "m: Unknown Sum"]
      webhook-failing = [
        "> 25 in 3 of 12 x 5 min", "100 * errors / (requests - FILL(rejected, 0))",
        "errors: AWS/ApiGateway 5xx Sum ApiId=a1b2c3d4e5",
        "rejected: AWS/ApiGateway 4xx Sum ApiId=a1b2c3d4e5",
        "requests: AWS/ApiGateway Count Sum ApiId=a1b2c3d4e5",
      ]
      webhook-flooded     = ["> 12000 in 3 of 12 x 5 min", "m: AWS/ApiGateway Count Sum ApiId=a1b2c3d4e5"]
      webhook-mismatch    = ["> 0 in 1 of 1 x 5 min", "m: Webhooks Sum Result=mismatch"]
      webhook-row-missing = ["> 0 in 1 of 1 x 5 min", "m: Webhooks Sum Result=row_missing"]
      webhook-signatures  = ["> 5 in 2 of 12 x 5 min", "m: Webhooks Sum Result=invalid_signature"]
      webhook-unavailable = [
        "> 25 in 3 of 12 x 5 min", "100 * failed / (requests - FILL(rejected, 0))",
        "failed: Webhooks Sum Result=unavailable", "rejected: AWS/ApiGateway 4xx Sum ApiId=a1b2c3d4e5",
        "requests: AWS/ApiGateway Count Sum ApiId=a1b2c3d4e5",
      ]
    })
    error_message = "alarms differ from this list"
  }
}

run "every_alarm_notifies_and_is_one_that_cloudwatch_accepts" {
  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      alarm.alarm_actions == toset([var.alarm_topic_arn]) && alarm.ok_actions == toset([var.alarm_topic_arn])
    ])
    error_message = "an alarm does not notify alarm_topic_arn"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : alarm.treat_missing_data == (
      alarm.comparison_operator == "LessThanThreshold" ? "breaching" : "notBreaching"
    )])
    error_message = "treat_missing_data: must be notBreaching, or an idle queue raises an alarm, except below a threshold"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms : (
      alarm.datapoints_to_alarm <= alarm.evaluation_periods
      && length([for query in alarm.metric_query : query.id if query.return_data]) == 1
      && length(alarm.metric_query) <= 10 && length(alarm.alarm_description) <= 1024
      && !strcontains(jsonencode(alarm.metric_query), "SEARCH")
    )])
    error_message = "CloudWatch rejects another result than one, an 11th metric, SEARCH, or a longer description"
  }

  # CloudWatch API reference, PutMetricAlarm.
  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms : [
      for query in alarm.metric_query : [for m in query.metric :
        m.period * alarm.evaluation_periods <= (m.period < 3600 ? 86400 : 604800)
      ]
    ]]))
    error_message = "CloudWatch rejects more than a day, or seven days with periods of an hour"
  }

  assert {
    condition = { for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => true
      if strcontains(alarm.alarm_description, join(" ", [
        "aws lambda update-event-source-mapping --no-enabled --region eu-west-1",
        "--uuid ${output.event_source_mapping_uuid}",
      ]))
    } == { mismatch = true, key-reused = true }
    error_message = "an alarm that may mean a wrong charge must contain the command that stops processing"
  }
}

run "alarms_read_the_metrics_of_a_given_scope" {
  command = plan

  variables {
    scope = "other"
  }

  # The state has the default scope, which pins.tf keeps.
  plan_options {
    replace = [terraform_data.deployment]
  }

  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms :
      [for query in alarm.metric_query : [for metric in query.metric :
        try(metric.dimensions.Scope, "") == (metric.namespace == "orderonce" ? "other" : "")
      ]]
    ]))
    error_message = "an alarm reads metrics of another scope than the function's"
  }
}

run "reconcile_errors_includes_two_consecutive_runs" {
  command = plan

  variables {
    reconcile_minutes = 60
  }

  # Runs are an hour apart, so two of them never fall into twelve periods of five minutes.
  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["reconcile-errors"].evaluation_periods >= 13
    error_message = "reconcile-errors: must include two consecutive runs"
  }
}

run "the_dashboard_answers_a_question_per_part" {
  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget.properties.markdown if widget.type == "text"
      ] == [
      "## Are we charging?", "## Once?", "## Fast?", "## Published?", "## Refunded?", "## Accepted by HTTP?",
      "## Receipts?",
    ]
    error_message = "dashboard: headings differ from this list"
  }

  assert {
    condition = length([for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget if widget.type == "metric"
    ]) == 21
    error_message = "dashboard: must have three charts per question"
  }

  assert {
    condition = one([for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget.properties.metrics[0][0] if try(widget.properties.title, "") == "Refunds, by reason"
      ]) == {
      label      = "$${PROP('Dim.Reason')}"
      expression = "SEARCH('{orderonce,Function,Scope,Reason} Scope=\"orderonce-dev-836569\" MetricName=\"Refunds\"', 'Sum', 300)"
    }
    error_message = "dashboard: refunds have the dimension Function"
  }
}

run "without_the_optional_parts_their_alarms_and_rows_are_absent" {
  variables {
    create_refund             = false
    create_webhook            = false
    create_intake             = false
    create_receipts           = false
    create_example_subscriber = false
  }

  # docs/guides/deploy.md says what 51 alarms cost; 7 are of the webhook, 8 of refunds.
  assert {
    condition = length(aws_cloudwatch_metric_alarm.alarms) == 36 && !can(regex(
      "(webhook-|dispute|intake-|receipt|subscriber|refund-|refunds-)", join(" ", keys(aws_cloudwatch_metric_alarm.alarms)),
    ))
    error_message = "an alarm of a part that is off remains, or one of another part is missing"
  }

  assert {
    condition = length([for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget if widget.type == "text"
    ]) == 4
    error_message = "dashboard: a row of a part that is off remains"
  }
}

run "without_a_topic_alarms_notify_nobody" {
  command = plan

  variables {
    alarm_topic_arn = null
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length(alarm.alarm_actions) == 0
    ])
    error_message = "an alarm has actions without a topic"
  }

  expect_failures = [check.alarms_notify_somebody]
}
