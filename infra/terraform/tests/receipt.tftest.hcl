mock_provider "aws" {
  source = "./tests/mocks"
}

# Distinct values, so that a permission for another resource fails.
override_resource {
  target = aws_dynamodb_table.receipts
  values = { arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts" }
}

override_resource {
  target = aws_sqs_queue.receipts
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:receipts"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts"
  }
}

override_resource {
  target = aws_sqs_queue.receipts_dead
  values = {
    arn = "arn:aws:sqs:eu-west-1:123456789012:receipts-dead"
    url = "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts-dead"
  }
}

variables {
  create_receipts           = true
  receipt_from              = "receipts@shop.invalid"
  receipt_configuration_set = "shop-receipts"
  create_operator_policies  = true
}

run "without_the_variable_there_are_no_receipts" {
  variables {
    create_receipts = null
  }

  assert {
    condition = alltrue([for resources in [
      aws_sqs_queue.receipts, aws_sqs_queue.receipts_dead, aws_dynamodb_table.receipts,
      aws_sqs_queue_redrive_allow_policy.receipts_dead, aws_lambda_event_source_mapping.receipts,
      aws_iam_role_policy.receipt,
    ] : length(resources) == 0])
    error_message = "create_receipts: must be off by default"
  }

  assert {
    condition = alltrue([for resources in [
      aws_cloudwatch_event_rule.receipts, aws_cloudwatch_event_target.receipts, aws_sqs_queue_policy.receipts,
    ] : length(resources) == 0])
    error_message = "create_receipts: a rule exists"
  }

  assert {
    condition = alltrue([for resources in [
      aws_lambda_function.functions, aws_lambda_alias.live, aws_iam_role.functions,
      aws_cloudwatch_log_group.functions,
    ] : keys(resources) == ["order", "publish", "reconcile", "webhook"]])
    error_message = "create_receipts: a part of the function exists"
  }

  assert {
    condition = alltrue([for value in [
      output.receipts_table, output.receipt_queue_url, output.receipt_dead_letter_queue_url,
    ] : value == null]) && !strcontains(output.operator_environment, "RECEIPTS_TABLE")
    error_message = "outputs: must be null without receipts"
  }

  assert {
    condition = alltrue([for policy in [
      aws_iam_policy.operator_read[0].policy, aws_iam_policy.operator_repair[0].policy,
    ] : !strcontains(policy, "Receipts")])
    error_message = "operator policies: have a statement on the receipts table"
  }
}

run "order_events_and_events_of_ses_reach_the_queue" {
  assert {
    condition = jsonencode({ for name, rule in aws_cloudwatch_event_rule.receipts : name => [
      rule.event_bus_name, jsondecode(rule.event_pattern),
      ] }) == jsonencode({
      mail = ["default", {
        source = ["aws.ses"]
        "detail-type" = [
          "Email Sent", "Email Delivered", "Email Bounced", "Email Complaint Received", "Email Rejected",
          "Email Rendering Failed",
        ]
        detail = { mail = { tags = { "ses:configuration-set" = ["shop-receipts"] } } }
      }]
      orders = ["orderonce-dev-orders", {
        source        = ["orderonce.orderonce-dev-836569"]
        "detail-type" = ["Order Paid", "Refund Succeeded"]
      }]
    })
    error_message = "rules: must match the events of this deployment and of its configuration set"
  }

  assert {
    condition = jsonencode({ for name, target in aws_cloudwatch_event_target.receipts : name => [
      target.rule, target.event_bus_name, target.arn, target.dead_letter_config[0].arn,
      ] }) == jsonencode({ for name, bus in { mail = "default", orders = "orderonce-dev-orders" } : name => [
      "orderonce-dev-receipts-${name}", bus, "arn:aws:sqs:eu-west-1:123456789012:receipts",
      "arn:aws:sqs:eu-west-1:123456789012:receipts-dead",
    ] })
    error_message = "targets: must be the queue, with the dead-letter queue"
  }
}

run "only_the_rules_may_send_to_the_queues" {
  assert {
    condition = jsonencode({ for name, queue in aws_sqs_queue_policy.receipts : name => [
      for s in jsondecode(queue.policy).Statement : [s.Sid, s.Effect, s.Principal, s.Resource, s.Condition]
      ] }) == jsonencode({ for name, arn in {
      dead_letters = "arn:aws:sqs:eu-west-1:123456789012:receipts-dead"
      queue        = "arn:aws:sqs:eu-west-1:123456789012:receipts"
      } : name => [
      [
        "RulesSendReceiptEvents", "Allow", { Service = "events.amazonaws.com" }, arn,
        {
          ArnEquals = { "aws:SourceArn" = [
            aws_cloudwatch_event_rule.receipts["mail"].arn, aws_cloudwatch_event_rule.receipts["orders"].arn,
          ] }
          BoolIfExists = { "aws:SecureTransport" = "true" }
        },
      ],
      [
        "DenyReceiptEventsWithoutTLS", "Deny", { AWS = "arn:aws:iam::123456789012:root" }, arn,
        { Bool = { "aws:SecureTransport" = "false" } },
      ],
    ] })
    error_message = "queue policy: must allow these rules only, and deny access without TLS"
  }

  assert {
    condition = { for name, queue in aws_sqs_queue_policy.receipts : name => queue.queue_url } == {
      dead_letters = "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts-dead"
      queue        = "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts"
    }
    error_message = "queue policy: belongs to another queue"
  }
}

run "the_function_parks_before_sqs_does" {
  assert {
    condition = jsondecode(aws_sqs_queue.receipts[0].redrive_policy) == {
      deadLetterTargetArn = "arn:aws:sqs:eu-west-1:123456789012:receipts-dead"
      maxReceiveCount     = 1000
    }
    error_message = "redrive_policy: must be the function's dead-letter queue, after 1000 receives"
  }

  assert {
    condition = jsondecode(aws_sqs_queue_redrive_allow_policy.receipts_dead[0].redrive_allow_policy) == {
      redrivePermission = "byQueue"
      sourceQueueArns   = ["arn:aws:sqs:eu-west-1:123456789012:receipts"]
    }
    error_message = "redrive_allow_policy: must name the receipt queue alone"
  }

  assert {
    condition = (
      aws_sqs_queue.receipts[0].message_retention_seconds == 604800
      && aws_sqs_queue.receipts_dead[0].message_retention_seconds == 1209600
      && aws_sqs_queue.receipts_dead[0].max_message_size == 1048576
      && aws_sqs_queue.receipts[0].receive_wait_time_seconds == 20
    )
    error_message = "queues: a parked message must fit, and stay for longer than the function takes to park it"
  }

  assert {
    condition = (
      aws_sqs_queue.receipts[0].visibility_timeout_seconds
      >= 6 * aws_lambda_function.functions["receipt"].timeout
    )
    error_message = "visibility_timeout_seconds: must be at least 6 x the function's timeout"
  }

  assert {
    condition = (
      aws_sqs_queue.receipts[0].sqs_managed_sse_enabled && aws_sqs_queue.receipts_dead[0].sqs_managed_sse_enabled
    )
    error_message = "queues: must be encrypted, events of SES contain addresses"
  }
}

run "the_queues_are_standard_queues_even_with_fifo" {
  command = plan

  variables {
    fifo = true
  }

  # The state has standard queues, which pins.tf keeps.
  plan_options {
    replace = [terraform_data.queue_type]
  }

  assert {
    condition = (
      aws_sqs_queue.receipts[0].fifo_queue != true && aws_sqs_queue.receipts_dead[0].fifo_queue != true
      && aws_sqs_queue.receipts[0].name == "orderonce-dev-receipts"
      && aws_sqs_queue.receipts_dead[0].name == "orderonce-dev-receipts-dead"
    )
    error_message = "queues: a rule sends no message group"
  }
}

run "the_mapping_reports_each_failed_event" {
  assert {
    condition = (
      aws_lambda_event_source_mapping.receipts[0].function_response_types == toset(["ReportBatchItemFailures"])
      && aws_lambda_event_source_mapping.receipts[0].batch_size == 10
      && aws_lambda_event_source_mapping.receipts[0].scaling_config[0].maximum_concurrency == 2
    )
    error_message = "mapping: one failed receipt would redeliver its batch"
  }

  assert {
    condition     = length(aws_lambda_event_source_mapping.receipts[0].filter_criteria) == 0
    error_message = "filter_criteria: Lambda deletes messages of a queue that do not match"
  }

  assert {
    condition = (
      aws_lambda_event_source_mapping.receipts[0].event_source_arn == "arn:aws:sqs:eu-west-1:123456789012:receipts"
      && aws_lambda_event_source_mapping.receipts[0].function_name == aws_lambda_alias.live["receipt"].arn
      && aws_lambda_event_source_mapping.receipts[0].enabled
    )
    error_message = "mapping: must invoke the alias live with the receipt queue"
  }
}

run "the_table_lists_doubtful_receipts" {
  command = plan

  assert {
    condition = (
      aws_dynamodb_table.receipts[0].name == "orderonce-dev-receipts"
      && aws_dynamodb_table.receipts[0].hash_key == "orderId"
      && aws_dynamodb_table.receipts[0].range_key == "sk"
      && toset([for a in aws_dynamodb_table.receipts[0].attribute : "${a.name} ${a.type}"])
      == toset(["orderId S", "sk S", "doubtful S", "updatedAt N"])
    )
    error_message = "table: the keys must be orderId and sk"
  }

  assert {
    condition = [for index in aws_dynamodb_table.receipts[0].global_secondary_index : {
      name = index.name, projection = index.projection_type, keys = [for key in index.key_schema :
      "${key.attribute_name} ${key.key_type}"]
    }] == [{ name = "doubtful", projection = "ALL", keys = ["doubtful HASH", "updatedAt RANGE"] }]
    error_message = "indexes: must be doubtful alone, with doubtful and updatedAt, and whole rows"
  }
}

run "the_table_is_protected_and_its_rows_never_expire" {
  command = plan

  assert {
    condition     = aws_dynamodb_table.receipts[0].deletion_protection_enabled
    error_message = "deletion_protection_enabled: must be on, the rows prevent a second e-mail"
  }

  assert {
    condition     = aws_dynamodb_table.receipts[0].point_in_time_recovery[0].enabled
    error_message = "point_in_time_recovery: must be on"
  }

  assert {
    condition     = length(aws_dynamodb_table.receipts[0].ttl) == 0
    error_message = "ttl: a receipt whose row expired could be sent again"
  }

  assert {
    condition     = aws_dynamodb_table.receipts[0].billing_mode == "PAY_PER_REQUEST"
    error_message = "billing_mode: must be PAY_PER_REQUEST"
  }
}

run "deletion_protection_can_be_turned_off" {
  command = plan

  variables {
    deletion_protection = false
  }

  assert {
    condition     = !aws_dynamodb_table.receipts[0].deletion_protection_enabled
    error_message = "deletion_protection: ignored, so destroy would fail"
  }
}

run "the_environment_is_complete" {
  assert {
    condition = aws_lambda_function.functions["receipt"].environment[0].variables == tomap({
      RECEIPTS_TABLE            = "orderonce-dev-receipts"
      QUEUE_URL                 = "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts"
      DEAD_LETTER_QUEUE_URL     = "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts-dead"
      SCOPE                     = "orderonce-dev-836569"
      STRIPE_SECRET_ARN         = "arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"
      RECEIPT_FROM              = "receipts@shop.invalid"
      RECEIPT_CONFIGURATION_SET = "shop-receipts"
      RECEIPTS                  = "at_most_once"
    })
    error_message = "environment: differs from docs/reference/configuration.md"
  }

  assert {
    condition = startswith(
      aws_lambda_function.functions["receipt"].description, "Sends a receipt for each paid order. Key 1. Zip ",
    )
    error_message = "description: a rotation must publish the function, which reads the Stripe key"
  }

  assert {
    condition = (
      aws_lambda_function.functions["receipt"].timeout == 60
      && aws_lambda_function.functions["receipt"].memory_size == 256
      && aws_lambda_function.functions["receipt"].reserved_concurrent_executions == null
      && aws_lambda_function.functions["receipt"].source_code_hash
      == filebase64sha256("tests/packages/receipt.zip")
      && aws_cloudwatch_log_group.functions["receipt"].retention_in_days == 90
    )
    error_message = "function: must be receipt.zip with 60 s and 256 MB, and its logs must expire"
  }
}

run "a_doubtful_receipt_can_be_sent_again_by_choice" {
  command = plan

  variables {
    receipt_mode = "at_least_once"
  }

  assert {
    condition     = aws_lambda_function.functions["receipt"].environment[0].variables.RECEIPTS == "at_least_once"
    error_message = "receipt_mode: ignored"
  }
}

run "the_role_allows_exact_actions_on_exact_arns" {
  assert {
    condition = jsonencode({ for s in jsondecode(aws_iam_role_policy.receipt[0].policy).Statement :
      s.Sid => [s.Effect, sort(flatten([s.Action])), flatten([s.Resource])]
      }) == jsonencode({
      ReceiveReceiptEvents = [
        "Allow",
        ["sqs:ChangeMessageVisibility", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ReceiveMessage"],
        ["arn:aws:sqs:eu-west-1:123456789012:receipts"],
      ]
      ParkReceiptEvents = [
        "Allow", ["sqs:GetQueueAttributes", "sqs:SendMessage"],
        ["arn:aws:sqs:eu-west-1:123456789012:receipts-dead"],
      ]
      WriteReceipts = [
        "Allow", ["dynamodb:GetItem", "dynamodb:PutItem"],
        ["arn:aws:dynamodb:eu-west-1:123456789012:table/receipts"],
      ]
      SendReceipts = [
        "Allow", ["ses:SendEmail"],
        [
          "arn:aws:ses:eu-west-1:123456789012:identity/shop.invalid",
          "arn:aws:ses:eu-west-1:123456789012:configuration-set/shop-receipts",
        ],
      ]
      ReadKeyForReceipts = [
        "Allow", ["secretsmanager:GetSecretValue"],
        ["arn:aws:secretsmanager:eu-west-1:123456789012:secret:secret-AbCdEf"],
      ]
      WriteReceiptLogs = [
        "Allow", ["logs:CreateLogStream", "logs:PutLogEvents"],
        ["${aws_cloudwatch_log_group.functions["receipt"].arn}:log-stream:*"],
      ]
    })
    error_message = "explain changes in docs/reference/iam.md: got ${aws_iam_role_policy.receipt[0].policy}"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.receipt[0].policy).Statement :
      s.Condition if s.Sid == "SendReceipts"
    ] == [{ StringEquals = { "ses:FromAddress" = "receipts@shop.invalid" } }]
    error_message = "SendReceipts: the function could send as another address of the identity"
  }

  assert {
    condition = (
      aws_iam_role_policy.receipt[0].role == aws_iam_role.functions["receipt"].id
      && aws_iam_role.functions["receipt"].name == "orderonce-dev-receipt"
    )
    error_message = "role: the function must have its own, with this policy"
  }
}

run "the_sender_can_have_a_name" {
  variables {
    receipt_from = "The Shop <receipts@mail.shop.invalid>"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.receipt[0].policy).Statement :
      [s.Resource[0], s.Condition.StringEquals["ses:FromAddress"]] if s.Sid == "SendReceipts"
    ] == [["arn:aws:ses:eu-west-1:123456789012:identity/mail.shop.invalid", "receipts@mail.shop.invalid"]]
    error_message = "SendReceipts: must name the domain and the address, without the name"
  }

  assert {
    condition = (
      aws_lambda_function.functions["receipt"].environment[0].variables.RECEIPT_FROM
      == "The Shop <receipts@mail.shop.invalid>"
    )
    error_message = "RECEIPT_FROM: must be receipt_from as it is"
  }
}

run "the_identity_can_be_an_address" {
  command = plan

  variables {
    receipt_identity = "receipts@shop.invalid"
  }

  assert {
    condition = (
      local.receipt_mail_arns[0] == "arn:aws:ses:eu-west-1:123456789012:identity/receipts@shop.invalid"
    )
    error_message = "receipt_identity: ignored"
  }
}

run "only_tracing_allows_actions_on_any_resource" {
  variables {
    tracing = true
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.receipt[0].policy).Statement :
      flatten([s.Action]) if contains(flatten([s.Resource]), "*")
    ] == [["xray:PutTraceSegments", "xray:PutTelemetryRecords"]]
    error_message = "only X-Ray's actions, which support no resources, may have Resource *"
  }
}

run "operators_read_and_resolve_receipts" {
  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_policy.operator_read[0].policy).Statement :
      [s.Action, s.Resource] if strcontains(s.Sid, "Receipts")
      ]) == jsonencode([[["dynamodb:GetItem", "dynamodb:Query"], [
        "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts",
        "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts/index/doubtful",
    ]]])
    error_message = "operator-read: must read receipts and the index doubtful, and change none"
  }

  assert {
    condition = jsonencode([for s in jsondecode(aws_iam_policy.operator_repair[0].policy).Statement :
      [s.Action, s.Resource] if s.Sid == "ResolveReceipts"
    ]) == jsonencode([["dynamodb:PutItem", "arn:aws:dynamodb:eu-west-1:123456789012:table/receipts"]])
    error_message = "operator-repair: must resolve receipts"
  }

  assert {
    condition = (
      strcontains(output.operator_environment, "\nexport RECEIPTS_TABLE=orderonce-dev-receipts\n")
      && output.receipts_table == "orderonce-dev-receipts"
      && output.receipt_queue_url == "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts"
      && output.receipt_dead_letter_queue_url
      == "https://sqs.eu-west-1.amazonaws.com/123456789012/receipts-dead"
    )
    error_message = "outputs: one is missing or wrong"
  }
}

run "alarms_read_the_queues_and_the_results_of_the_function" {
  assert {
    condition = jsonencode({ for name, alarm in aws_cloudwatch_metric_alarm.alarms : name => sort(flatten([
      for query in alarm.metric_query : [for metric in query.metric : join(" ", concat(
        [metric.namespace, metric.metric_name, metric.stat],
        [for dimension in sort(keys(metric.dimensions)) : "${dimension}=${metric.dimensions[dimension]}"],
      ))]
      ])) if startswith(name, "receipt") }) == jsonencode({
      receipt-errors = ["AWS/Lambda Errors Sum FunctionName=orderonce-dev-receipt"]
      receipt-queue-settings = [for setting in ["dead_letter_retention", "max_receives", "redrive_target", "retention"] :
        "orderonce QueueMisconfigured Sum Function=receipt Scope=orderonce-dev-836569 Setting=${setting}"
      ]
      receipt-throttles = ["AWS/Lambda Throttles Sum FunctionName=orderonce-dev-receipt"]
      receipts-bounced = [
        "orderonce Receipts Sum Function=receipt Result=bounced Scope=orderonce-dev-836569",
        "orderonce Receipts Sum Function=receipt Result=sent Scope=orderonce-dev-836569",
      ]
      receipts-dead-letters = [
        "AWS/SQS ApproximateNumberOfMessagesVisible Maximum QueueName=orderonce-dev-receipts-dead",
      ]
      receipts-doubtful = ["orderonce Receipts Sum Function=receipt Result=doubtful Scope=orderonce-dev-836569"]
      receipts-failed   = ["orderonce Receipts Sum Function=receipt Result=failed Scope=orderonce-dev-836569"]
      receipts-retrying = ["orderonce WaitingAge Maximum Function=receipt Scope=orderonce-dev-836569"]
      receipts-waiting = [
        "AWS/SQS ApproximateAgeOfOldestMessage Maximum QueueName=orderonce-dev-receipts",
      ]
    })
    error_message = "alarms: metrics differ from this list"
  }

  assert {
    condition = alltrue([for name in ["receipts-doubtful", "receipts-dead-letters", "receipt-errors"] :
      aws_cloudwatch_metric_alarm.alarms[name].threshold == 0
    ])
    error_message = "threshold: must be 0, a single occurrence needs a person"
  }

  assert {
    condition = (
      [for query in aws_cloudwatch_metric_alarm.alarms["receipts-bounced"].metric_query :
      query.expression if query.return_data] == ["IF(sent >= 20, 100 * bounced / sent, 0)"]
      && aws_cloudwatch_metric_alarm.alarms["receipts-bounced"].threshold == 5
      && aws_cloudwatch_metric_alarm.alarms["receipts-waiting"].threshold == 1800
    )
    error_message = "receipts-bounced, receipts-waiting: wrong threshold"
  }

  assert {
    condition = [for query in aws_cloudwatch_metric_alarm.alarms["receipt-queue-settings"].metric_query :
      query.expression if query.return_data
    ] == ["FILL(dead_letter_retention, 0) + FILL(max_receives, 0) + FILL(redrive_target, 0) + FILL(retention, 0)"]
    error_message = "receipt-queue-settings: must be a sum that one missing metric does not end"
  }

  assert {
    condition = [for widget in jsondecode(aws_cloudwatch_dashboard.orders.dashboard_body).widgets :
      widget.properties.markdown if widget.type == "text"
      ] == [
      "## Are we charging?", "## Once?", "## Fast?", "## Published?", "## Receipts?",
    ]
    error_message = "dashboard: must have a row for receipts"
  }
}

# Last, because pins.tf keeps the key.
run "the_table_and_the_role_use_the_given_key" {
  plan_options {
    replace = [terraform_data.kms_keys]
  }

  variables {
    kms_key_arn = "arn:aws:kms:eu-west-1:123456789012:key/00000000-0000-0000-0000-000000000000"
  }

  assert {
    condition = (
      aws_dynamodb_table.receipts[0].server_side_encryption[0].enabled
      && aws_dynamodb_table.receipts[0].server_side_encryption[0].kms_key_arn == var.kms_key_arn
    )
    error_message = "server_side_encryption: must use kms_key_arn"
  }

  assert {
    condition = [for s in jsondecode(aws_iam_role_policy.keys["receipt"].policy).Statement :
      s.Condition.StringEquals["kms:ViaService"]
    ] == [["dynamodb.eu-west-1.amazonaws.com", "secretsmanager.eu-west-1.amazonaws.com"]]
    error_message = "keys: must be usable through DynamoDB and Secrets Manager"
  }

  assert {
    condition = (
      aws_sqs_queue.receipts[0].kms_master_key_id == null
      && aws_sqs_queue.receipts_dead[0].kms_master_key_id == null
    )
    error_message = "queues: EventBridge could not send without a statement in the policy of the key"
  }
}
