mock_provider "aws" {
  source = "./tests/mocks"
}

run "every_failure_has_an_alarm" {
  command = plan

  assert {
    condition = toset(keys(aws_cloudwatch_metric_alarm.alarms)) == toset([
      "dead-letters", "dead-letters-old", "orders-waiting", "orders-retrying", "orders-open-long",
      "errors", "throttles", "duration", "duplicates", "unknown-outcomes", "declines",
      "mismatch", "key-reused", "misconfigured", "store-unavailable", "provider-unavailable",
      "refund-unknown", "refund-mismatch", "refunded-outside",
      "queue-retention", "queue-max-receives", "queue-redrive-target", "queue-dead-letter-retention",
      "webhook-failing", "webhook-unavailable", "webhook-signatures", "webhook-mismatch", "webhook-flooded",
      "webhook-row-missing", "dispute",
      "reconcile-errors", "reconcile-missing", "reconcile-mismatch", "orders-without-intent",
      "reconcile-failing", "reconcile-behind",
      "orders-waiting-open", "orders-waiting-action-required", "orders-waiting-pending",
      "publish-behind", "publish-errors", "publish-throttles", "publish-silent",
      "events-unreadable", "events-unpublished",
    ])
    error_message = "alarms: names differ from this list"
  }
}

run "deploy_md_counts_alarms_and_metrics_correctly" {
  command = plan

  assert {
    condition     = length(aws_cloudwatch_metric_alarm.alarms) == 45
    error_message = "${length(aws_cloudwatch_metric_alarm.alarms)} alarms: update docs/guides/deploy.md"
  }

  assert {
    condition = length(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms :
      [for query in alarm.metric_query : query.metric]
    ])) == 54
    error_message = "number of alarm metrics changed: update docs/guides/deploy.md"
  }
}

run "orders_by_http_and_receipts_have_alarms_of_their_own" {
  variables {
    create_intake             = true
    stock_tracking            = true
    create_receipts           = true
    receipt_from              = "receipts@shop.invalid"
    receipt_configuration_set = "shop-receipts"
  }

  assert {
    condition = toset([for name in keys(aws_cloudwatch_metric_alarm.alarms) : name
      if startswith(name, "intake") || startswith(name, "receipt")
      ]) == toset([
      "intake-failing", "intake-errors", "intake-throttles", "receipts-doubtful", "receipts-dead-letters",
      "receipts-waiting", "receipts-retrying", "receipts-failed", "receipts-bounced",
      "receipt-errors", "receipt-throttles", "receipt-queue-settings",
    ])
    error_message = "alarms: names differ from this list"
  }

  assert {
    condition = length(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms :
      [for query in alarm.metric_query : query.metric]
    ])) == 71 && length(aws_cloudwatch_metric_alarm.alarms) == 57
    error_message = "number of alarms or of their metrics changed: update docs/guides/deploy.md"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length(alarm.alarm_description) <= 1024
      && length([for query in alarm.metric_query : query.id if query.return_data]) == 1
    ])
    error_message = "CloudWatch rejects a longer description, and more than one result"
  }
}

run "every_alarm_notifies_and_missing_data_is_breaching_only_below_a_threshold" {
  command = plan

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      alarm.alarm_actions == toset([var.alarm_topic_arn])
    ])
    error_message = "an alarm does not notify alarm_topic_arn"
  }

  assert {
    condition = alltrue([for name, alarm in aws_cloudwatch_metric_alarm.alarms :
      alarm.comparison_operator == (name == "reconcile-missing" ? "LessThanThreshold" : "GreaterThanThreshold")
      && alarm.treat_missing_data == (name == "reconcile-missing" ? "breaching" : "notBreaching")
    ])
    error_message = "treat_missing_data: must be notBreaching, or an idle queue raises an alarm"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      alarm.datapoints_to_alarm <= alarm.evaluation_periods
    ])
    error_message = "datapoints_to_alarm exceeds evaluation_periods"
  }
}

run "every_alarm_is_one_that_cloudwatch_accepts" {
  command = plan

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length([for query in alarm.metric_query : query.id if query.return_data]) == 1
    ])
    error_message = "an alarm must return exactly one result"
  }

  assert {
    condition = alltrue(flatten([for alarm in aws_cloudwatch_metric_alarm.alarms :
      [for query in alarm.metric_query : !strcontains(coalesce(query.expression, "-"), "SEARCH")]
    ]))
    error_message = "CloudWatch rejects SEARCH in an alarm"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length(alarm.metric_query) <= 10
    ])
    error_message = "CloudWatch rejects an alarm with more than ten metrics"
  }
}

run "thresholds_leave_time_to_act" {
  command = plan

  assert {
    condition = alltrue([for name in [
      "dead-letters", "mismatch", "key-reused", "misconfigured", "errors",
      "queue-retention", "queue-max-receives", "queue-redrive-target", "queue-dead-letter-retention",
      "webhook-mismatch", "webhook-row-missing", "refund-unknown", "refund-mismatch", "refunded-outside",
    ] : aws_cloudwatch_metric_alarm.alarms[name].threshold == 0])
    error_message = "threshold: must be 0, a single occurrence needs a person"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["dead-letters-old"].threshold == 604800
    error_message = "dead-letters-old: threshold must be seven days, SQS deletes at fourteen"
  }

  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["duration"].threshold == 24000
    error_message = "duration: threshold must be below the function's timeout"
  }
}

run "an_outage_raises_an_alarm_and_a_short_throttle_does_not" {
  command = plan

  assert {
    condition = { for name in ["store-unavailable", "provider-unavailable"] : name => flatten([
      for query in aws_cloudwatch_metric_alarm.alarms[name].metric_query : [
        for metric in query.metric : "${metric.metric_name} ${metric.dimensions.Reason} ${metric.stat}"
        if can(metric.dimensions.Reason)
      ]
      ]) } == {
      store-unavailable    = ["Redelivered store_unavailable Sum"]
      provider-unavailable = ["Redelivered provider_unavailable Sum"]
    }
    error_message = "store-unavailable, provider-unavailable: must read Redelivered by reason"
  }

  assert {
    condition = alltrue([for name in ["store-unavailable", "provider-unavailable"] :
      aws_cloudwatch_metric_alarm.alarms[name].datapoints_to_alarm == 3
      && aws_cloudwatch_metric_alarm.alarms[name].evaluation_periods == 4
    ])
    error_message = "must need three breaching periods of four, or a short throttle raises an alarm"
  }

  assert {
    condition = aws_cloudwatch_metric_alarm.alarms["orders-retrying"].threshold == 1800000 && flatten([
      for query in aws_cloudwatch_metric_alarm.alarms["orders-retrying"].metric_query :
      [for metric in query.metric : "${metric.metric_name} ${metric.stat}"]
    ]) == ["WaitingAge Maximum"]
    error_message = "orders-retrying: must read WaitingAge (SQS's own age excludes retried orders)"
  }
}

run "alarms_on_refunds_read_what_the_functions_count" {
  command = plan

  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => flatten([
      for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        [metric.namespace, metric.metric_name, metric.stat],
        [for dimension in sort(keys(metric.dimensions)) : "${dimension}=${metric.dimensions[dimension]}"],
      ))]
      ]) if startswith(name, "refund") }) == jsonencode({
      refund-mismatch  = ["orderonce Redelivered Sum Reason=mismatch Scope=orderonce-dev-836569"]
      refund-unknown   = ["orderonce Parked Sum Reason=refund_unknown Scope=orderonce-dev-836569"]
      refunded-outside = ["orderonce RefundedOutside Sum Scope=orderonce-dev-836569"]
    })
    error_message = "alarms on refunds: metrics differ from this list"
  }

  # A period is five minutes, and the message comes back every fifteen.
  assert {
    condition = (
      aws_cloudwatch_metric_alarm.alarms["refund-mismatch"].datapoints_to_alarm == 1
      && aws_cloudwatch_metric_alarm.alarms["refund-mismatch"].evaluation_periods == 4
    )
    error_message = "refund-mismatch: must stay on between two deliveries of one message"
  }
}

run "alarms_on_webhooks_read_the_api_and_the_results_of_the_function" {
  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => sort(flatten([
      for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        [metric.namespace, metric.metric_name, metric.stat],
        [for dimension in sort(keys(metric.dimensions)) : "${dimension}=${metric.dimensions[dimension]}"],
      ))]
      ])) if startswith(name, "webhook-") }) == jsonencode({
      webhook-failing = [
        "AWS/ApiGateway 4xx Sum ApiId=a1b2c3d4e5",
        "AWS/ApiGateway 5xx Sum ApiId=a1b2c3d4e5", "AWS/ApiGateway Count Sum ApiId=a1b2c3d4e5",
      ]
      webhook-flooded = ["AWS/ApiGateway Count Sum ApiId=a1b2c3d4e5"]
      webhook-unavailable = [
        "AWS/ApiGateway 4xx Sum ApiId=a1b2c3d4e5",
        "AWS/ApiGateway Count Sum ApiId=a1b2c3d4e5",
        "orderonce Webhooks Sum Result=unavailable Scope=orderonce-dev-836569",
      ]
      webhook-signatures = [
        "orderonce Webhooks Sum Result=invalid_signature Scope=orderonce-dev-836569",
      ]
      webhook-mismatch    = ["orderonce Webhooks Sum Result=mismatch Scope=orderonce-dev-836569"]
      webhook-row-missing = ["orderonce Webhooks Sum Result=row_missing Scope=orderonce-dev-836569"]
    })
    error_message = "webhook alarms: metrics differ from this list"
  }

  assert {
    condition = { for name in ["webhook-failing", "webhook-unavailable"] : name => flatten([
      for query in aws_cloudwatch_metric_alarm.alarms[name].metric_query :
      [query.expression] if query.return_data
      ]) } == {
      webhook-failing     = ["100 * errors / (requests - FILL(rejected, 0))"]
      webhook-unavailable = ["100 * failed / (requests - FILL(rejected, 0))"]
    }
    error_message = "webhook-failing, webhook-unavailable: must be a share of the signed requests: anybody can send others"
  }

  assert {
    condition = alltrue([for name in ["webhook-failing", "webhook-unavailable"] :
      aws_cloudwatch_metric_alarm.alarms[name].threshold == 25
      && aws_cloudwatch_metric_alarm.alarms[name].datapoints_to_alarm == 3
      && aws_cloudwatch_metric_alarm.alarms[name].evaluation_periods == 12
    ])
    error_message = "must need three periods of an hour: Stripe may repeat a rare event only after hours"
  }

  # 50 requests a second for five minutes are 15,000.
  assert {
    condition     = aws_cloudwatch_metric_alarm.alarms["webhook-flooded"].threshold == 12000
    error_message = "webhook-flooded: must be 80 percent of webhook_rate_limit"
  }

  assert {
    condition = (
      aws_cloudwatch_metric_alarm.alarms["webhook-signatures"].threshold == 5
      && aws_cloudwatch_metric_alarm.alarms["webhook-signatures"].datapoints_to_alarm == 2
    )
    error_message = "webhook-signatures: must allow a few unsigned requests, because the URL is public"
  }
}

run "alarms_that_ask_to_stop_contain_the_command" {
  assert {
    condition = alltrue([for name in ["mismatch", "key-reused"] : strcontains(
      aws_cloudwatch_metric_alarm.alarms[name].alarm_description,
      join(" ", [
        "aws lambda update-event-source-mapping --no-enabled --region eu-west-1",
        "--uuid ${output.event_source_mapping_uuid}",
      ]),
    )])
    error_message = "an alarm asks to stop processing without the command"
  }

  assert {
    condition = alltrue([for alarm in aws_cloudwatch_metric_alarm.alarms :
      length(alarm.alarm_description) <= 1024
    ])
    error_message = "CloudWatch rejects a description of more than 1,024 characters"
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

run "the_dashboard_answers_four_questions" {
  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget.properties.markdown if widget.type == "text"
      ] == [
      "## Are we charging?", "## Once?", "## Fast?", "## Published?",
    ]
    error_message = "dashboard: headings differ from this list"
  }

  assert {
    condition = length([for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget if widget.type == "metric"
    ]) == 12
    error_message = "dashboard: must have three charts per question"
  }

  assert {
    condition = one([for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      [for metric in widget.properties.metrics : metric[0].label]
      if startswith(try(widget.properties.title, ""), "Settled orders")
    ]) == ["$${PROP('Dim.Status')}", "refunds $${PROP('Dim.Reason')}"]
    error_message = "dashboard: refunds must be beside settled orders, with a label of their own"
  }
}
