mock_provider "aws" {
  source = "./tests/mocks"
}

# Distinct ARNs, so that a permission for another resource fails. infra/drift_test.go checks
# which alias and which role are named, because those of all functions have the same ARN here.
override_resource {
  target = aws_cloudwatch_event_bus.orders
  values = { arn = "arn:aws:events:eu-west-1:123456789012:event-bus/orderonce-dev-orders" }
}

override_resource {
  target = aws_cloudwatch_event_archive.orders
  values = { arn = "arn:aws:events:eu-west-1:123456789012:archive/orderonce-dev-orders" }
}

override_resource {
  target = aws_sqs_queue.unpublished
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:unpublished"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/unpublished"
  }
}

override_resource {
  target = aws_sqs_queue.paid
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:paid"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/paid"
  }
}

override_resource {
  target = aws_sqs_queue.paid_dead
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:paid-dead"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/paid-dead"
  }
}

run "events_are_published_in_order_and_none_is_dropped_in_silence" {
  assert {
    condition = (
      aws_lambda_event_source_mapping.publish.event_source_arn == aws_dynamodb_table.orders.stream_arn
      && aws_lambda_event_source_mapping.publish.function_name == aws_lambda_alias.live["publish"].arn
      && aws_lambda_event_source_mapping.publish.enabled
    )
    error_message = "mapping: must invoke the alias live with the table's stream"
  }

  assert {
    condition     = aws_lambda_event_source_mapping.publish.starting_position == "TRIM_HORIZON"
    error_message = "starting_position: LATEST misses the events that precede the mapping"
  }

  assert {
    condition     = aws_lambda_event_source_mapping.publish.parallelization_factor == 1
    error_message = "parallelization_factor: must be 1"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.publish.function_response_types == toset(["ReportBatchItemFailures"])
      && aws_lambda_event_source_mapping.publish.bisect_batch_on_function_error
    )
    error_message = "function_response_types, bisect_batch_on_function_error: a failure would repeat its batch"
  }

  assert {
    condition     = aws_lambda_event_source_mapping.publish.maximum_retry_attempts == -1
    error_message = "maximum_retry_attempts: must be -1, or an outage drops events"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.publish.maximum_record_age_in_seconds >= 20 * 3600
      && aws_lambda_event_source_mapping.publish.maximum_record_age_in_seconds < 24 * 3600
    )
    error_message = "maximum_record_age_in_seconds: must end before the stream drops a record, at 24 hours"
  }

  assert {
    condition = [for destination in aws_lambda_event_source_mapping.publish.destination_config :
      [for on_failure in destination.on_failure : on_failure.destination_arn]
    ] == [["arn:aws:sqs:eu-west-1:123456789012:unpublished"]]
    error_message = "on_failure: must be the queue unpublished, or dropped events are not reported"
  }

  assert {
    condition     = aws_lambda_event_source_mapping.publish.batch_size == 100
    error_message = "batch_size: must be 100"
  }
}

run "only_new_event_rows_invoke_the_function" {
  assert {
    condition = [for criteria in aws_lambda_event_source_mapping.publish.filter_criteria :
      [for filter in criteria.filter : jsondecode(filter.pattern)]
      ] == [[{
        eventName = ["INSERT"]
        dynamodb  = { Keys = { sk = { S = [{ prefix = "event#" }] } } }
    }]]
    error_message = "filter_criteria: must be inserted rows whose sk begins with event#"
  }
}

run "the_function_has_no_access_to_the_table_or_to_stripe" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_role_policy.publish.policy).Statement :
      s.Sid => [s.Effect, sort(flatten([s.Action])), flatten([s.Resource])]
      }) == jsonencode({
      ReadStream = [
        "Allow",
        [
          "dynamodb:DescribeStream", "dynamodb:GetRecords", "dynamodb:GetShardIterator",
          "dynamodb:ListStreams",
        ],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/table/stream/2026-01-01T00:00:00.000"],
      ]
      PublishEvents = [
        "Allow", ["events:PutEvents"],
        ["arn:aws:events:eu-west-1:123456789012:event-bus/orderonce-dev-orders"],
      ]
      ReportUnpublished = [
        "Allow", ["sqs:SendMessage"], ["arn:aws:sqs:eu-west-1:123456789012:unpublished"],
      ]
      WritePublishLogs = [
        "Allow", ["logs:CreateLogStream", "logs:PutLogEvents"],
        ["${aws_cloudwatch_log_group.functions["publish"].arn}:log-stream:*"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_role_policy.publish.policy}"
  }

  assert {
    condition = (
      aws_iam_role_policy.publish.role == aws_iam_role.functions["publish"].id
      && aws_iam_role.functions["publish"].name == "orderonce-dev-publish"
    )
    error_message = "role: the function must have its own, with this policy"
  }

  assert {
    condition = aws_lambda_function.functions["publish"].environment[0].variables == tomap({
      EVENT_BUS = "orderonce-dev-orders"
      SCOPE     = "orderonce-dev-836569"
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }
}

run "the_function_reserves_no_concurrency" {
  command = plan

  assert {
    condition = (
      aws_lambda_function.functions["publish"].reserved_concurrent_executions == null
      && aws_lambda_function.functions["publish"].timeout == 30
      && aws_lambda_function.functions["publish"].memory_size == 256
    )
    error_message = "function: must reserve no concurrency and have 30 s and 256 MB"
  }

  assert {
    condition = (
      aws_lambda_function.functions["publish"].source_code_hash
      == filebase64sha256("tests/packages/publish.zip")
    )
    error_message = "source_code_hash: must be the hash of publish.zip"
  }

  assert {
    condition = startswith(
      aws_lambda_function.functions["publish"].description, "Publishes the events of orders. Zip ",
    )
    error_message = "description: must not contain the version of the Stripe key, which the function has not"
  }

  assert {
    condition     = aws_cloudwatch_log_group.functions["publish"].retention_in_days == 90
    error_message = "log group: must expire"
  }
}

run "the_bus_archives_its_events_for_90_days" {
  assert {
    condition = (
      aws_cloudwatch_event_bus.orders.name == "orderonce-dev-orders"
      && aws_cloudwatch_event_bus.orders.kms_key_identifier == null
    )
    error_message = "bus: must be encrypted with the key that AWS owns"
  }

  assert {
    condition = (
      aws_cloudwatch_event_archive.orders.event_source_arn == output.event_bus_arn
      && aws_cloudwatch_event_archive.orders.retention_days == 90
      && aws_cloudwatch_event_archive.orders.event_pattern == null
    )
    error_message = "archive: must keep every event of the bus for 90 days"
  }
}

run "the_archive_can_keep_events_forever" {
  command = plan

  variables {
    event_archive_days = 0
  }

  assert {
    condition     = aws_cloudwatch_event_archive.orders.retention_days == 36500
    error_message = "retention_days: the provider would not send 0, so 90 days would stay"
  }
}

run "positions_of_unpublished_records_are_kept_for_14_days" {
  assert {
    condition = (
      aws_sqs_queue.unpublished.name == "orderonce-dev-unpublished"
      && aws_sqs_queue.unpublished.message_retention_seconds == 1209600
      && aws_sqs_queue.unpublished.sqs_managed_sse_enabled
    )
    error_message = "unpublished: must be encrypted and keep messages for 14 days, the maximum"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_sqs_queue_policy.unpublished.policy).Statement :
      [s.Effect, s.Principal.AWS, s.Resource, s.Condition]
      ]) == jsonencode([
      [
        "Deny", "arn:aws:iam::123456789012:root", "arn:aws:sqs:eu-west-1:123456789012:unpublished",
        { Bool = { "aws:SecureTransport" = "false" } },
      ],
      [
        "Deny", "arn:aws:iam::123456789012:root", "arn:aws:sqs:eu-west-1:123456789012:unpublished",
        { ArnNotEquals = { "aws:PrincipalArn" = aws_iam_role.functions["publish"].arn } },
      ],
    ])
    error_message = "queue policy: must deny access without TLS, and other senders than the function"
  }
}

run "there_is_no_example_subscriber_by_default" {
  command = plan

  assert {
    condition = (
      length(aws_cloudwatch_event_rule.paid) == 0
      && length(aws_cloudwatch_event_target.paid) == 0
      && length(aws_sqs_queue.paid) == 0
      && length(aws_sqs_queue.paid_dead) == 0
      && length(aws_sqs_queue_policy.paid) == 0
    )
    error_message = "create_example_subscriber: must be off, because nothing reads the queue"
  }
}

run "the_example_subscriber_gets_paid_orders" {
  variables {
    create_example_subscriber = true
  }

  assert {
    condition = (
      jsonencode(jsondecode(aws_cloudwatch_event_rule.paid[0].event_pattern)) == jsonencode({
        source        = ["orderonce.orderonce-dev-836569"]
        "detail-type" = ["Order Paid"]
      })
      && aws_cloudwatch_event_rule.paid[0].event_bus_name == output.event_bus_name
    )
    error_message = "rule: must match Order Paid of this deployment, on its bus"
  }

  assert {
    condition = (
      aws_cloudwatch_event_target.paid[0].arn == "arn:aws:sqs:eu-west-1:123456789012:paid"
      && aws_cloudwatch_event_target.paid[0].rule == "orderonce-dev-paid"
      && aws_cloudwatch_event_target.paid[0].event_bus_name == output.event_bus_name
      && aws_cloudwatch_event_target.paid[0].dead_letter_config[0].arn
      == "arn:aws:sqs:eu-west-1:123456789012:paid-dead"
    )
    error_message = "target: must be the queue, with the dead-letter queue"
  }

  assert {
    condition = (
      aws_sqs_queue.paid[0].message_retention_seconds == 604800
      && aws_sqs_queue.paid_dead[0].message_retention_seconds == 1209600
      && aws_sqs_queue.paid[0].sqs_managed_sse_enabled
      && aws_sqs_queue.paid_dead[0].sqs_managed_sse_enabled
    )
    error_message = "queues: must be encrypted, and the dead-letter queue must keep messages for longer"
  }

  assert {
    condition = jsondecode(aws_sqs_queue.paid[0].redrive_policy) == {
      deadLetterTargetArn = "arn:aws:sqs:eu-west-1:123456789012:paid-dead"
      maxReceiveCount     = 20
    }
    error_message = "redrive_policy: an event that the consumer fails on would be received for seven days"
  }

  assert {
    condition     = output.paid_queue_url == "https://sqs.eu-west-1.amazonaws.com/123456789012/paid"
    error_message = "paid_queue_url: wrong queue"
  }
}

run "only_the_rule_may_send_to_the_example_subscriber" {
  variables {
    create_example_subscriber = true
  }

  assert {
    condition = jsonencode({ for name, queue in aws_sqs_queue_policy.paid : name => [
      for s in jsondecode(queue.policy).Statement : [s.Sid, s.Effect, s.Principal, s.Resource, s.Condition]
      ] }) == jsonencode({ for name, arn in {
      dead_letters = "arn:aws:sqs:eu-west-1:123456789012:paid-dead"
      queue        = "arn:aws:sqs:eu-west-1:123456789012:paid"
      } : name => [
      [
        "RuleSendsPaidOrders", "Allow", { Service = "events.amazonaws.com" }, arn,
        {
          ArnEquals    = { "aws:SourceArn" = aws_cloudwatch_event_rule.paid[0].arn }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        },
      ],
      [
        "DenyPaidOrdersWithoutTLS", "Deny", { AWS = "arn:aws:iam::123456789012:root" }, arn,
        { Bool = { "aws:SecureTransport" = "false" } },
      ],
    ] })
    error_message = "queue policy: must allow this rule only, and deny access without TLS"
  }

  assert {
    condition = { for name, queue in aws_sqs_queue_policy.paid : name => queue.queue_url } == {
      dead_letters = "https://sqs.eu-west-1.amazonaws.com/123456789012/paid-dead"
      queue        = "https://sqs.eu-west-1.amazonaws.com/123456789012/paid"
    }
    error_message = "queue policy: belongs to another queue"
  }
}

run "alarms_read_the_metrics_of_the_function" {
  command = plan

  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => flatten([
      for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        [metric.namespace, metric.metric_name, metric.stat],
        [for dimension in sort(keys(metric.dimensions)) : "${dimension}=${metric.dimensions[dimension]}"],
      ))]
      ]) if can(regex("^(publish-|events-|dispute)", name)) }) == jsonencode({
      dispute            = ["orderonce Disputed Sum Scope=orderonce-dev-836569"]
      events-unpublished = ["AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-unpublished"]
      events-unreadable  = ["orderonce Unpublished Sum Reason=unreadable Scope=orderonce-dev-836569"]
      publish-behind     = ["AWS/Lambda IteratorAge Maximum FunctionName=orderonce-dev-publish"]
      publish-errors     = ["AWS/Lambda Errors Sum FunctionName=orderonce-dev-publish"]
      publish-silent = [
        "orderonce Settled Sum Scope=orderonce-dev-836569 Status=paid", "orderonce Published Sum Scope=orderonce-dev-836569",
      ]
      publish-throttles = ["AWS/Lambda Throttles Sum FunctionName=orderonce-dev-publish"]
    })
    error_message = "alarms: metrics differ from this list"
  }

  assert {
    condition = alltrue([for name in ["dispute", "events-unpublished", "events-unreadable"] :
      aws_cloudwatch_metric_alarm.alarms[name].threshold == 0
      && aws_cloudwatch_metric_alarm.alarms[name].datapoints_to_alarm == 1
    ])
    error_message = "dispute, events-*: a single occurrence needs a person"
  }

  # Hours are left before Lambda gives up.
  assert {
    condition = (
      aws_cloudwatch_metric_alarm.alarms["publish-behind"].threshold == 900000
      && aws_cloudwatch_metric_alarm.alarms["publish-behind"].datapoints_to_alarm == 2
      && aws_cloudwatch_metric_alarm.alarms["publish-behind"].evaluation_periods == 3
    )
    error_message = "publish-behind: must be raised by events that are 15 minutes late"
  }
}

run "the_example_subscriber_has_an_alarm_of_its_own" {
  variables {
    create_example_subscriber = true
  }

  assert {
    condition = [for query in aws_cloudwatch_metric_alarm.alarms["subscriber-dead-letters"].metric_query :
      query.metric[0].dimensions
    ] == [tomap({ QueueName = "orderonce-dev-paid-dead" })]
    error_message = "subscriber-dead-letters: must read its dead-letter queue"
  }
}

run "it_also_runs_without_webhooks" {
  command = plan

  variables {
    create_webhook = false
  }

  assert {
    condition = (
      contains(keys(aws_lambda_function.functions), "publish")
      && contains(keys(aws_cloudwatch_metric_alarm.alarms), "publish-behind")
      && !contains(keys(aws_cloudwatch_metric_alarm.alarms), "dispute")
    )
    error_message = "create_webhook: must remove the alarm dispute, and leave publish"
  }
}

run "outputs_name_the_function_and_what_consumers_need" {
  assert {
    condition = (
      output.publish_function_name == "orderonce-dev-publish"
      && output.publish_log_group == "/aws/lambda/orderonce-dev-publish"
      && output.event_bus_name == "orderonce-dev-orders"
      && output.event_bus_arn == "arn:aws:events:eu-west-1:123456789012:event-bus/orderonce-dev-orders"
      && output.event_archive_arn == "arn:aws:events:eu-west-1:123456789012:archive/orderonce-dev-orders"
      && output.event_source == "orderonce.orderonce-dev-836569"
      && output.unpublished_queue_url == "https://sqs.eu-west-1.amazonaws.com/123456789012/unpublished"
    )
    error_message = "outputs: one is missing or wrong"
  }
}
